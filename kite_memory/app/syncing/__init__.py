"""Use case of the exchange with a person's other machines: timeline, vault and counts joined with `sync`."""
