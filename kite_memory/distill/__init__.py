"""Distillation: turn chunks of events into records."""
