"""What a connection says of itself."""

from kite_memory.distill.transport import shortened_error


def test_a_reason_has_no_half_of_a_key_wherever_it_is_cut() -> None:
    key = "sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ2sT4uV6wX8yZ0" * 3

    for before in (*range(60, 200, 7), *range(880, 1_000, 7)):
        result = shortened_error(f"{'refused ' * (before // 8)}{key} is not valid " + "and so on " * 200)

        assert len(result) <= 200
        assert key[14:22] not in result
