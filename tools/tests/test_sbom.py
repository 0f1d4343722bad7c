"""The bill of materials is valid for those who read it, and Python's packages are installed by their hashes."""

import json
import pathlib

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = pathlib.Path(__file__).resolve().parents[2]


def faults(text: str) -> object:
    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)


def test_the_schema_holds() -> None:
    assert faults((ROOT / "bin/sbom.cdx.json").read_text()) is None


def test_a_fault_is_seen() -> None:
    bom = json.loads((ROOT / "bin/sbom.cdx.json").read_text())
    del bom["components"][0]["name"]
    assert faults(json.dumps(bom)) is not None


def test_each_reference_is_a_component() -> None:
    bom = json.loads((ROOT / "bin/sbom.cdx.json").read_text())
    refs = [c["bom-ref"] for c in bom["components"]] + [bom["metadata"]["component"]["bom-ref"]]
    assert len(refs) == len(set(refs))
    for d in bom["dependencies"]:
        assert {d["ref"], *d.get("dependsOn", [])} <= set(refs)
    assert next(d for d in bom["dependencies"] if d["ref"] == "forerun")["dependsOn"]


@pytest.mark.parametrize("folder", ["runtimes/python", "tools", "examples"])
def test_requirements_have_hashes(folder: str) -> None:
    pins = (ROOT / folder / "requirements.txt").read_text().replace("\\\n", "").splitlines()
    pins = [p for p in pins if not p.startswith("#")]
    assert pins
    for p in pins:
        assert "==" in p, p
        assert "--hash=sha256:" in p, p


def test_each_requirements_file_is_made() -> None:
    out = {".git", ".forerun", "bin", "node_modules", "templates"}
    found = [p for p in ROOT.rglob("requirements.txt") if not out & set(p.relative_to(ROOT).parts)]
    assert sorted(p.parent.name for p in found) == ["examples", "python", "quic", "tools"]
    for p in found:
        asked = [line.split(" ")[0] for line in p.with_suffix(".in").read_text().splitlines() if "==" in line]
        assert set(asked) <= {line.split(" ")[0] for line in p.read_text().splitlines()}, p
