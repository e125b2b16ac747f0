"""The shape of the code: who may import what, and that no provider is known to it."""

import ast
import re
from pathlib import Path

import pytest

from conformance.contract import providers

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "conformance").rglob("*.py"))
ONLY_IN = {
    "httpx": {"transport"},
    "yaml": {"yamlfile"},
    "cryptography": {"certificate/keys"},
    "jsonschema_rs": {"schema"},
    "schemathesis": {"planning/samples"},
    "hypothesis": {"planning/samples"},
    "pytest_html": {"plugin"},
    "starlette": {"reference/server"},
    "uvicorn": {"reference/server"},
}
PURE = {"model", "strictjson", "sse", "asked", "exchange"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / "conformance").with_suffix("").as_posix()


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_library_is_met_in_one_place_only(path):
    for library, places in ONLY_IN.items():
        if library in {one.partition(".")[0] for one in imports_of(path)}:
            where = name_of(path)
            assert any(where == place or where.startswith(f"{place}/") for place in places), f"{library} in {where}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_provider_is_known_to_code(path):
    names = [name for name in providers() if name != "openai"]  # the API's style is named after its first provider
    words = "|".join(re.escape(name) for name in names)
    found = re.findall(rf"\b({words})\b", path.read_text("utf-8"), re.IGNORECASE)
    assert not found, f"a provider is a folder under specs/, but {name_of(path)} names {set(found)}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_can_be_read_at_one_sitting(path):
    assert len(path.read_text("utf-8").splitlines()) <= 400


def test_the_nouns_need_the_standard_library_only():
    for path in MODULES:
        if name_of(path) in PURE:
            own = {one for one in imports_of(path) if one.startswith("conformance")}
            assert own <= {"conformance.model", "conformance.model.json_text", "conformance.model.sse", "conformance"}
            others = {one.partition(".")[0] for one in imports_of(path)} - {"conformance"}
            assert others <= {
                "__future__",
                "collections",
                "dataclasses",
                "enum",
                "functools",
                "json",
                "re",
                "typing",
                "zlib",
            }


def test_checks_do_no_input_or_output():
    for path in MODULES:
        if name_of(path).startswith("checks/"):
            assert not imports_of(path) & {"os", "pathlib", "socket", "random", "time", "asyncio", "subprocess"}
