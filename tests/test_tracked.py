"""Two runs of the benchmarks beside each other."""

from benchmarks.harness import Row
from benchmarks.tracked import comparison, keep, kept


def test_what_changed_between_two_runs(tmp_path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    steady, gone = Row("decide", 2.0, "sort", 1.0), Row("write", 1.0, "copy", 1.0)
    keep(old, "this machine", {"files": [steady, gone, Row("read", 1.0, "copy", 1.0)]})
    keep(new, "this machine", {"files": [steady, Row("read", 3.0, "copy", 1.0)],
                               "rows": [Row("decide", 1.0, "sort", 2.0)]})  # fmt: skip
    _, _, first, *others = comparison(kept(old), kept(new)).splitlines()
    assert first == "| files | read | copy | 1 | 3 | 3 × slower |"
    assert others == [
        "| files | decide | sort | 2 | 2 |  |",
        "| files | write | copy | 1 | – | gone |",
        "| rows | decide | sort | – | 0.5 | new |",
    ]


def test_a_slower_machine_changes_nothing(tmp_path):
    for name, seconds in (("old", 1.0), ("new", 7.0)):
        rows = [Row("decide", 3 * seconds, "sort", seconds)]
        keep(tmp_path / name, "", {"expected": rows})
    table = comparison(kept(tmp_path / "old"), kept(tmp_path / "new"))
    assert table.endswith("| expected | decide | sort | 3 | 3 |  |")


def test_a_ratio_above_its_limit_fails_and_says_why(monkeypatch, capsys):
    from benchmarks import __main__ as command
    from benchmarks import expected

    for seconds, code, said in [(3.0, 1, "1 ratio is above the limit (decide)"), (1.0, 0, "")]:
        monkeypatch.setattr(expected, "rows", lambda s=seconds: [Row("decide", s, "sort", 1.0, 2)])
        monkeypatch.setattr("sys.argv", ["benchmarks", "expected"])
        assert command.main() == code
        shown = capsys.readouterr()
        assert shown.out.count("MISSED") == code
        assert said in shown.err
