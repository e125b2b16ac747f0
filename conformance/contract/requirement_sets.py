"""Sets of requirements as they stood on a date, so that an upgrade of the suite does not turn a nightly run red."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Final

from conformance.contract.loader import home
from conformance.contract.yaml_file import ContractError, read_yaml
from conformance.model import Contract, Level

HEAD: Final = "# What was required on this date, and how strongly. `conformance freeze` wrote it; it is never edited.\n"


@dataclass(frozen=True, slots=True)
class RequirementSet:
    """A set: the level of each requirement by id, and the contract that it was taken from."""

    provider: str
    date: str
    contract_sha256: str
    levels: Mapping[str, Level]

    def __str__(self) -> str:
        """The file, one requirement a line, so that two sets can be compared line by line."""
        rows = "".join(f"  {name}: {level}\n" for name, level in sorted(self.levels.items()))
        head = f"provider: {self.provider}\ndate: '{self.date}'\ncontract_sha256: {self.contract_sha256}\n"
        return f"{HEAD}{head}requirements:\n{rows}"


def freeze(contract: Contract, day: str) -> RequirementSet:
    """The set that is in force now, under a date."""
    levels = {row.id: row.level for row in contract.requirements}
    return RequirementSet(contract.provider, _day(day), contract.sha256, levels)


def write(requirements: RequirementSet, specs: Sequence[Path] = ()) -> Path:
    """Write a set into its provider's folder. One that is there already is never changed."""
    file = home(requirements.provider, specs) / "frozen" / f"{requirements.date}.yaml"
    if file.exists() and read(file, requirements.provider) != requirements:
        raise ContractError(file, "", "exists already with other contents; freeze under another date")
    file.parent.mkdir(exist_ok=True)
    file.write_text(str(requirements), "utf-8")
    return file


def dates(provider: str, specs: Sequence[Path] = ()) -> tuple[str, ...]:
    """The dates of a provider's sets, the oldest first."""
    return tuple(sorted(file.stem for file in (home(provider, specs) / "frozen").glob("*.yaml")))


def in_force(provider: str, day: str, specs: Sequence[Path] = ()) -> RequirementSet:
    """The set that was in force on a day: the newest of those with that date or an earlier one."""
    known = dates(provider, specs)
    older = [date for date in known if date <= _day(day)]
    folder = home(provider, specs) / "frozen"
    if not older:
        hint = f"the first is of {known[0]}" if known else f"there is none; `conformance freeze {provider}` makes one"
        raise ContractError(folder, "", f"has no set that was in force on {day}; {hint}")
    return read(folder / f"{older[-1]}.yaml", provider)


def read(file: Path, provider: str) -> RequirementSet:
    """A set from its file; a ContractError where it is none."""
    data = read_yaml(file)
    expected = {"provider": provider, "date": file.stem}
    if not isinstance(data, Mapping) or {name: data.get(name) for name in expected} != expected:
        raise ContractError(file, "", f"is no set of {provider} of {file.stem}; freeze it again")
    rows: Any = data.get("requirements")
    if not isinstance(rows, Mapping) or any(level not in list(Level) for level in rows.values()):
        raise ContractError(file, "/requirements", "is no map from ids to MUST, SHOULD or MAY; freeze it again")
    levels = {str(name): Level(level) for name, level in rows.items()}
    return RequirementSet(provider, file.stem, str(data.get("contract_sha256", "")), levels)


def pinned(contract: Contract, pinned_set: RequirementSet) -> Contract:
    """The contract with the levels of an earlier set; requirements that were added since are not scored."""
    rows = tuple(
        replace(row, level=pinned_set.levels.get(row.id, row.level), scored=row.id in pinned_set.levels)
        for row in contract.requirements
    )
    removed = sorted(pinned_set.levels.keys() - {row.id for row in rows})
    return replace(contract, requirements=rows, frozen={"date": pinned_set.date, "gone": removed})


def differences(before: RequirementSet, after: RequirementSet) -> Iterator[str]:
    """What changed from one set to another, in words."""
    strength = list(Level)
    for name in sorted(before.levels.keys() | after.levels.keys()):
        old, new = before.levels.get(name), after.levels.get(name)
        if old is None:
            yield f"added: {name} ({new})"
        elif new is None:
            yield f"removed: {name} ({old})"
        elif old != new:
            kind = "tightened" if strength.index(new) < strength.index(old) else "loosened"
            yield f"{kind}: {name}, {old} → {new}"


def _day(day: str) -> str:
    try:
        return date.fromisoformat(day).isoformat()
    except ValueError:
        raise ContractError("--requirements", "", f"is {day!r}; expected a date such as 2026-11-20") from None
