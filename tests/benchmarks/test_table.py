from benchmarks.table import SECTIONS, compose


def test_stored_sections_come_in_their_own_order_and_missing_ones_are_left_out() -> None:
    stored = {
        "overhead": {"date": "2030-01-02", "text": "second"},
        "tiny-json": {"date": "2030-01-01", "text": "first"},
    }
    text = compose(stored, "a machine", "some servers")
    assert text.index("first") < text.index("second")
    assert text.count("###") == 2
    assert "a machine" in text


def test_every_section_has_a_name_of_its_own() -> None:
    names = [section.name for section in SECTIONS]
    assert len(set(names)) == len(names)
