"""The wheel: what is in it, and that its commands work where only the wheel is.

Built from the sources and installed into a fresh virtual environment, which sees the packages of
the one that runs the tests but not its acs_cl. It is used from an empty folder. `make wheels` has
an environment that shares nothing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAPPED = ("emu", "benchmarks", "kernels_cl")  # installed below acs_cl, see pyproject.toml
DATA = {".cl", ".css", ".cu", ".h", ".html", ".js", ".json", ".typed"}
BUILD = ROOT / "build" / "core" / "{wheel_tag}"  # where `make venv` has compiled the core


def clean_environment(home: Path) -> dict[str, str]:
    """The environment of somebody who has never run this: no paths, no overrides, no caches."""
    ours = ("PYTHON", "ACS_CL_", "PYOPENCL_", "POCL_", "VIRTUAL_ENV", "SKBUILD_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    # PoCL's wheel builds nothing on CPUs that are newer than it is, unless this asks for a repair
    asked = {"ACS_CL_POCL_CPU": "auto"}
    return environment | asked | {"XDG_CACHE_HOME": str(home), "PYTHONUTF8": "1"}


def pip(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )


def build(where: Path, scratch: Path, *settings: str, **environment: str) -> tuple[int, str]:
    """Build a wheel with the tools at hand, so that it takes no network."""
    given = [f"--config-settings={setting}" for setting in (f"build-dir={scratch}", *settings)]
    done = pip(
        "wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={where}", *given, str(ROOT),
        **environment,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("wheel")
    code, said = build(where, BUILD)
    assert code == 0, said
    (built,) = where.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The folder of commands of a new environment that has the wheel."""
    where = tmp_path_factory.mktemp("fresh")
    venv.create(where)
    commands = where / ("Scripts" if os.name == "nt" else "bin")
    done = pip(f"--python={commands / 'python'}", "install", "--no-deps", str(wheel))
    assert done.returncode == 0, done.stdout + done.stderr
    others = sysconfig.get_paths(vars={"base": str(where), "platbase": str(where)})["purelib"]
    (Path(others) / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return commands


@pytest.fixture
def use(fresh: Path, tmp_path: Path) -> Use:
    return Use(fresh, tmp_path)


class Use:
    """Runs commands of the fresh environment in a folder that is empty at first."""

    def __init__(self, commands: Path, scratch: Path) -> None:
        self.commands = commands
        self.folder = scratch / "empty"
        self.folder.mkdir()
        self.environment = clean_environment(scratch / "cache")

    def __call__(self, command: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(self.commands / command), *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, f"{command} {arguments}:\n{done.stdout}{done.stderr}"
        return done.stdout


def test_everything_lands_below_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (info,) = {name.split("/")[0] for name in names} - {"acs_cl"}
        top_level = {name.split("/")[0] for name in names}
    assert info.startswith("acs_cl-")
    assert info.endswith(".dist-info")
    assert top_level == {"acs_cl", info}
    ours = re.compile(r"(^|/)(tests/|test_|conftest\.py|__pycache__)")
    strays = [name for name in names if ours.search(name)]
    assert not strays


def test_wheel_holds_every_source_and_data_file(wheel: Path) -> None:
    folders = {"acs_cl": "acs_cl"} | {name: f"acs_cl/{name}" for name in MAPPED}
    expected = {
        f"{target}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, target in folders.items()
        for path in (ROOT / folder).rglob("*")
        if path.suffix in DATA | {".py", ".pyi"} or path.name == "py.typed"
    }
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("acs_cl/")}
    assert "acs_cl/py.typed" in held
    (core,) = {name for name in held if name.startswith("acs_cl/_core.")} - {"acs_cl/_core.pyi"}
    assert expected == held - {core}
    assert "none-any" not in wheel.name


@pytest.mark.parametrize(
    "without",
    [({"CXX": "no-such-compiler"}, ()), ({}, ("cmake.define.Python_INCLUDE_DIR=/nowhere",))],
    ids=["compiler", "headers"],
)
def test_nothing_is_installed_without(
    without: tuple[dict[str, str], tuple[str, ...]], tmp_path: Path
) -> None:
    environment, settings = without
    code, said = build(tmp_path / "wheel", tmp_path / "build", *settings, **environment)
    assert code != 0
    assert not list(tmp_path.glob("wheel/*.whl"))
    last = said[said.index("acs_cl is not installed") :]
    assert "C++17 compiler" in last
    assert "headers" in last
    assert "CMake Error" not in last, "the reader finds it below what was to be read last"


def test_wheel_carries_its_license(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if name.endswith("/LICENSE")]


def test_mapped_folders_import_from_the_installation(use: Use) -> None:
    code = (
        "import sys, importlib, importlib.util, importlib.resources as resources, pathlib\n"
        "import acs_cl\n"
        f"for name in {MAPPED!r}:\n"
        "    module = importlib.import_module(f'acs_cl.{name}')\n"
        "    assert pathlib.Path(sys.prefix) in pathlib.Path(module.__file__).parents, module\n"
        "    assert importlib.util.find_spec(name) is None, name\n"
        "assert resources.files('acs_cl').joinpath('py.typed').is_file()\n"
    )
    use("python", "-c", code)


def test_doctor_reports_json_and_the_core_that_is_in_the_wheel(use: Use) -> None:
    report = json.loads(use("acs-cl", "doctor", "--json"))
    assert report["core"].startswith("native, ")


def test_bench_measures_exports_and_draws(use: Use) -> None:
    words = ("vec", "--preset", "tiny", "--backend", "lanes", "--json", "out.json")
    printed = use("acs-cl", "bench", *words, "--plots", "pictures")
    found = json.loads((use.folder / "out.json").read_text("utf-8"))
    assert {"bare", "serial", "lanes", "expert"} <= set(found["workloads"]["vec"]["rows"])
    assert found["machine"]["driver"] in printed
    assert len(list((use.folder / "pictures").glob("*.png"))) == 2
    collected = use("acs-cl", "bench", "--collect", ".")
    assert found["machine"]["date"] in collected


def test_a_report_finds_the_parts_of_its_page(use: Use) -> None:
    timeline = use.folder / "timeline.jsonl"
    code = (
        "import acs_cl as acs\n"
        "with acs.Runtime() as rt:\n"
        "    with rt.measure() as m:\n"
        "        rt.zeros(8)\n"
        f"    m.save({str(timeline)!r})\n"
    )
    use("python", "-c", code)
    assert "1 launch" in use("acs-cl", "report", str(timeline), "--out", "page.html")
    assert "</html>" in (use.folder / "page.html").read_text("utf-8")


def test_demo_draws_its_picture(use: Use) -> None:
    printed = use("acs-cl", "demo", "--quick", "--out", "picture.png")
    picture = use.folder / "picture.png"
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert [path.name for path in use.folder.iterdir()] == ["picture.png"]
    assert printed.strip()
