"""The shape of the code: which package may import which, where libraries are used, and that code knows no provider."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from conformance.contract import providers

PACKAGE = Path(__file__).parents[1] / "conformance"
MODULES = sorted(PACKAGE.rglob("*.py"))

# A package imports itself and those before it, never one that comes later. Public names stand last.
ORDER = (
    "model", "contract", "plan", "send", "recording", "judge", "reference", "config", "run", "selftest", "report",
    "certificate", "pytest_plugin", "cli", "plugin", "suite", "__main__",
)  # fmt: skip
ONLY_IN = {
    "httpx": {"send/wire"},
    "yaml": {"contract/yaml_file", "recording/yaml_stream"},
    "cryptography": {"certificate/keys"},
    "jsonschema_rs": {"contract/validity"},
    "schemathesis": {"plan/samples"},
    "hypothesis": {"plan/samples"},
    "pytest_html": {"pytest_plugin/plugin"},
    "starlette": {"reference/server"},
    "uvicorn": {"reference/server"},
}
NO_INPUT_OR_OUTPUT = {"os", "pathlib", "socket", "random", "time", "asyncio", "subprocess"}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").as_posix()


def package_of(module: str) -> str:
    """`conformance.plan.context` → `plan`; the package itself (`__version__`) → empty."""
    return module.partition(".")[2].partition(".")[0]


@cache
def imports_of(path: Path) -> set[str]:
    """Every module that is imported, inside functions too; `from conformance import x` counts as `conformance.x`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "conformance":
            found |= {f"conformance.{alias.name}" for alias in node.names if alias.name != "__version__"}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_every_package_has_its_place_in_the_order():
    assert {name_of(path).partition("/")[0] for path in MODULES} == {*ORDER, "__init__"}


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_only_those_before_it(package):
    later = set(ORDER[ORDER.index(package) + 1 :])
    against = {
        f"{name_of(path)} imports {module}"
        for path in MODULES
        if name_of(path).partition("/")[0] == package
        for module in imports_of(path)
        if module.startswith("conformance") and package_of(module) in later
    }
    assert not against


@pytest.mark.parametrize(("library", "places"), ONLY_IN.items())
def test_a_library_is_used_in_one_place(library, places):
    users = {name_of(path) for path in MODULES if library in {name.partition(".")[0] for name in imports_of(path)}}
    assert users == places


def test_no_provider_is_known_to_code():
    names = [name for name in providers() if name != "openai"]  # the style of the API is named after its first provider
    words = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b", re.IGNORECASE)
    assert not {name_of(path): words.findall(text) for path in MODULES if words.search(text := path.read_text("utf-8"))}


def test_the_model_needs_the_standard_library_only():
    import sys

    for path in MODULES:
        if name_of(path).startswith("model/"):
            roots = {name.partition(".")[0] for name in imports_of(path)}
            assert roots <= {"conformance", *sys.stdlib_module_names}


def test_the_judge_does_no_input_or_output():
    for path in MODULES:
        if name_of(path).startswith("judge/"):
            assert not imports_of(path) & NO_INPUT_OR_OUTPUT, name_of(path)


@pytest.mark.parametrize("package", [name for name in ORDER if (PACKAGE / name).is_dir()])
def test_a_package_says_what_comes_in_and_what_goes_out(package):
    text = ast.get_docstring(ast.parse((PACKAGE / package / "__init__.py").read_text("utf-8"))) or ""
    assert len(text.splitlines()) >= 3


def test_the_architecture_page_lists_the_packages_in_their_order():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")
    table = page.partition("| package |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert listed == [name for name in ORDER if (PACKAGE / name).is_dir() and name != "suite"]
