import pytest
import run_tests


def test_what_a_package_that_took_too_long_was_at_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    r = run_tests.GoReport()
    for name, line in (
        ("TestA", "=== RUN   TestA"),
        ("TestA/b", "panic: test timed out after 12m"),
        ("TestA/b", "\ta_test.go:7 +0x2"),
    ):
        r.add({"Action": "output", "Package": "p", "Test": name, "Output": line + "\n"})
    r.add({"Action": "fail", "Package": "p", "Elapsed": 720})
    assert (r.count.failed, r.short[-2:]) == (1, ["UNENDED  p TestA/b, in short:", "\ta_test.go:7 +0x2"])
    assert "panic: test timed out" in capsys.readouterr().out
