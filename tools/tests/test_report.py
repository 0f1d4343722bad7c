import pathlib

import pytest
import run_tests

MODULE = "forerun.dev/forerun"
FAILS_ONCE = """
package x

import ("os"; "testing")

func TestOnce(t *testing.T) {
	t.Run("part", func(t *testing.T) {
		if os.Mkdir("tried", 0o755) == nil {
			t.Error("starved")
		}
	})
}

func TestAlways(t *testing.T) { t.Error("a fault") }

func TestFine(t *testing.T) {}
"""


def test_what_a_package_that_took_too_long_was_at_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    r = run_tests.GoReport()
    for name, line in (
        ("TestA", "=== RUN   TestA"),
        ("TestA/b", "panic: test timed out after 12m"),
        ("TestA/b", "\ta_test.go:7 +0x2"),
    ):
        r.add({"Action": "output", "Package": "p", "Test": name, "Output": line + "\n"})
    r.add({"Action": "fail", "Package": "p", "Elapsed": 720})
    assert (r.count.failed, r.short["p", ""][-2:]) == (1, ["UNENDED  p TestA/b, in short:", "\ta_test.go:7 +0x2"])
    assert "panic: test timed out" in capsys.readouterr().out


def test_a_test_that_failed_once_passes_at_the_second_try(tmp_path: pathlib.Path) -> None:
    (tmp_path / "go.mod").write_text(f"module {MODULE}\n")
    (tmp_path / "x_test.go").write_text(FAILS_ONCE)
    report = run_tests.go_tests(tmp_path, "./...")
    assert report.count == run_tests.Count(passed=1, failed=3)
    [again] = run_tests.second_tries([report])
    assert report.count == run_tests.Count(passed=3, failed=1)
    assert again.startswith(f"AGAIN    {MODULE} TestOnce: ")
    assert "starved" in again
    assert list(report.short) == [(MODULE, "TestAlways")]


def failed(*tests: tuple[str, str], last: str = "FAIL\n") -> run_tests.GoReport:
    report = run_tests.GoReport()
    for package, test in tests:
        report.add({"Action": "fail", "Package": package, "Test": test})
    for package in {package for package, _ in tests}:
        report.add({"Action": "output", "Package": package, "Output": last})
        report.add({"Action": "fail", "Package": package})
    return report


@pytest.mark.parametrize(
    ("report", "tried"),
    [
        (failed(("a", "TestA"), ("a", "TestA/b"), ("a", "TestB"), ("b", "TestA")), 3),
        (failed(*(("a", f"Test{n}") for n in range(4))), 0),
        (failed(("a", "TestA"), last="exit status 2\n"), 0),
        (failed(("a", "TestA"), (f"{MODULE}/internal/speculate", "TestA")), 0),
        (failed((f"{MODULE}/internal/state/resp", "TestA")), 0),
        (failed((f"{MODULE}/internal/memo", "TestA")), 0),
    ],
)
def test_what_has_a_second_try(report: run_tests.GoReport, tried: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def go_tests(folder: pathlib.Path, *what: str) -> run_tests.GoReport:
        tries.append(what)
        return run_tests.GoReport(folder)

    monkeypatch.setattr(run_tests, "go_tests", go_tests)
    assert run_tests.second_tries([report]) == []
    assert len(tries) == tried


def test_the_slowest_tests_are_named() -> None:
    report = run_tests.GoReport()
    for name, seconds in (("TestA", 1.5), ("TestB", 20.25), ("TestB/part", 20.0)):
        report.add({"Action": "pass", "Package": "p", "Test": name, "Elapsed": seconds})
    assert run_tests.slowest([report]) == ["    20.2s p TestB", "     1.5s p TestA"]
