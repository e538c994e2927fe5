import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from evalfarm.contracts.run import Isolation
from evalfarm.contracts.suite import Plugin
from evalfarm.errors import HarnessUnavailable, SuiteError
from worker.cell.cell import lay_out
from worker.cell.codex_home import adapt, template_home
from worker.cell.codex_plugin import marketplace_digest, mention, plugin_files, server_entry
from worker.cell.codex_runtime import codex_version, find_codex

PLUGIN = Plugin(name="Shop", version="1.2.0", description="A shop.")
ENTRY = {
    "type": "http",
    "url": "http://127.0.0.1:8123/mcp",
    "required": True,
    "default_tools_approval_mode": "approve",
    "startup_timeout_sec": 30,
}
OTHER = {"type": "http", "url": "http://127.0.0.1:9/other"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An author's plugin folder: two servers, a skill with a script, and an icon."""
    source = tmp_path / "plugin"
    files = {
        ".codex-plugin/plugin.json": json.dumps({"name": "Shop", "version": "1.2.0", "mcpServers": "./.mcp.json"}),
        ".mcp.json": json.dumps({"mcpServers": {"Shop": {"command": "shop", "args": ["--real"]}, "Other": OTHER}}),
        "skills/buy/SKILL.md": "---\nname: buy\ndescription: How to buy.\n---\nLook first.\n",
        "skills/buy/run.sh": "#!/bin/sh\n",
    }
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    (source / "icon.png").write_bytes(b"\x89PNG\xff")
    (source / "skills/buy/run.sh").chmod(0o755)
    return source


def described(files: Any) -> Any:
    return json.loads(files[Path(".mcp.json")].data)


def test_without_a_folder_a_plugin_is_made_of_its_name_and_description() -> None:
    files = plugin_files(PLUGIN, None)
    assert {str(path): (json.loads(file.data), file.program) for path, file in files.items()} == {
        ".codex-plugin/plugin.json": (
            {"name": "Shop", "version": "1.2.0", "description": "A shop.", "mcpServers": "./.mcp.json"},
            False,
        ),
        ".mcp.json": ({"mcpServers": {"Shop": ENTRY}}, False),
    }


def test_of_the_authors_own_folder_only_the_entry_of_the_server_under_test_is_changed(folder: Path) -> None:
    files = plugin_files(PLUGIN, folder)
    changed = {str(path) for path, file in files.items() if file.data != (folder / path).read_bytes()}
    assert changed == {".mcp.json"}
    assert described(files) == {"mcpServers": {"Shop": ENTRY, "Other": OTHER}}
    assert {str(path) for path, file in files.items() if file.program} == {"skills/buy/run.sh"}


def test_an_mcp_json_without_the_outer_object_is_understood(folder: Path) -> None:
    (folder / ".mcp.json").write_text(json.dumps({"Shop": OTHER}))
    assert described(plugin_files(PLUGIN, folder)) == {"Shop": ENTRY}


def test_the_server_under_test_may_have_a_name_of_its_own(folder: Path) -> None:
    plugin = PLUGIN.model_copy(update={"server": "Other"})
    entries = described(plugin_files(plugin, folder))["mcpServers"]
    assert (entries["Other"], entries["Shop"]) == (ENTRY, {"command": "shop", "args": ["--real"]})
    assert (server_entry(plugin), server_entry(PLUGIN)) == ("Other", "Shop")


CUT_SHORT = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (".mcp.json", '{"mcpServers": {"Other": {}}}', "there is no entry 'Shop' in .mcp.json, which has 'Other'"),
        (".mcp.json", "{}", "there is no entry 'Shop' in .mcp.json, which has none"),
        (".mcp.json", "{", CUT_SHORT),
        (".mcp.json", "[]", "'list' object has no attribute 'get'"),
        (".mcp.json", None, "there is no .mcp.json"),
        (
            ".codex-plugin/plugin.json",
            "{",
            CUT_SHORT,
        ),
        (".codex-plugin/plugin.json", None, "there is no .codex-plugin/plugin.json"),
    ],
)
def test_a_folder_that_does_not_describe_the_server_is_the_suites_mistake(
    folder: Path, name: str, text: str | None, told: str
) -> None:
    (folder / name).write_text(text) if text is not None else (folder / name).unlink()
    with pytest.raises(SuiteError) as caught:
        plugin_files(PLUGIN, folder)
    assert caught.value.message == f"the folder of plugin 'Shop' does not describe a server 'Shop': {told}"
    assert caught.value.hint == (
        "it needs .codex-plugin/plugin.json, and a .mcp.json whose mcpServers holds that entry; "
        "plugin.server names another one"
    )


def test_a_marketplace_is_known_by_every_file_that_codex_installs_and_by_who_may_run_it(folder: Path) -> None:
    before = marketplace_digest(PLUGIN, folder)
    assert marketplace_digest(PLUGIN, folder) == before
    assert marketplace_digest(PLUGIN.model_copy(update={"name": "Other"}), None) != marketplace_digest(PLUGIN, None)
    (folder / "skills/buy/run.sh").chmod(0o644)
    tame = marketplace_digest(PLUGIN, folder)
    (folder / "skills/buy/run.sh").write_text("else")
    assert len({before, tame, marketplace_digest(PLUGIN, folder)}) == 3


def test_a_question_is_addressed_to_the_plugin_as_the_product_does() -> None:
    assert mention(PLUGIN) == "[@Shop](plugin://Shop@evalfarm) "


def built(cache: Path, plugin: Plugin = PLUGIN, source: Path | None = None, isolation: Isolation = "cell") -> Path:
    codex = find_codex(None)
    return template_home(codex, codex_version(codex), plugin, source, isolation=isolation, cache=cache)


@pytest.mark.slow
@pytest.mark.anyio
async def test_workers_that_want_the_same_home_at_once_get_one_with_the_plugin_really_installed(
    tmp_path: Path, folder: Path
) -> None:
    cache = tmp_path / "homes"
    homes = await asyncio.gather(*(asyncio.to_thread(built, cache, PLUGIN, folder) for _ in range(3)))
    (home,) = set(homes)
    assert sorted(path.name for path in cache.iterdir()) == sorted([".lock", home.name])
    (installed,) = (path.parents[1] for path in (home / "plugins").rglob(".codex-plugin/plugin.json"))
    files = {path.relative_to(installed): path for path in installed.rglob("*") if path.is_file()}
    asked = plugin_files(PLUGIN, folder)
    assert {path: file.read_bytes() for path, file in files.items()} == {path: f.data for path, f in asked.items()}
    assert {str(path) for path, file in files.items() if file.stat().st_mode & 0o100} == {"skills/buy/run.sh"}
    assert json.loads((home / "auth.json").read_text())["OPENAI_API_KEY"] == "placeholder"
    config = tomllib.loads((home / "config.toml").read_text())
    assert (config["openai_base_url"], config["web_search"]) == ("http://127.0.0.1:8124/v1", "disabled")
    assert config["plugins"] == {"Shop@evalfarm": {"enabled": True}}
    written = [path for path in home.rglob("*") if path.suffix in {".toml", ".json", ".md"}]
    assert [path for path in written if str(tmp_path) in path.read_text()] == []


@pytest.mark.slow
def test_another_version_of_the_plugin_gets_another_home_and_the_same_one_is_not_built_again(
    tmp_path: Path, folder: Path
) -> None:
    cache = tmp_path / "homes"
    first = built(cache, source=folder)
    laid = first.stat().st_mtime_ns
    (folder / "skills/buy/SKILL.md").write_text("---\nname: buy\ndescription: How to buy.\n---\nJust buy.\n")
    second = built(cache, source=folder)
    (folder / "skills/buy/run.sh").chmod(0o644)
    homes = {first, second, built(cache, source=folder)}
    assert (len(homes), first.stat().st_mtime_ns) == (3, laid)


@pytest.mark.slow
def test_under_the_products_own_sandbox_a_clone_is_told_its_addresses_and_its_own_place(tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    lay_out(room, built(tmp_path / "homes", isolation="harness"))
    home = room / "home"
    adapt("http://127.0.0.1:5001/v1", "http://127.0.0.1:5002/mcp", home)
    config = tomllib.loads((home / "config.toml").read_text())
    assert (config["openai_base_url"], config["marketplaces"]["evalfarm"]["source"]) == (
        *("http://127.0.0.1:5001/v1", f"{home}/marketplaces/evalfarm"),
    )
    told = [json.loads(path.read_text())["mcpServers"]["Shop"]["url"] for path in home.rglob(".mcp.json")]
    assert set(told) == {"http://127.0.0.1:5002/mcp"}
    assert list((room / "work").iterdir()) == []


@pytest.mark.slow
def test_a_plugin_that_codex_refuses_is_said_with_its_words_and_leaves_no_home(tmp_path: Path, folder: Path) -> None:
    (folder / ".codex-plugin/plugin.json").write_text('{"version": 7}')
    cache = tmp_path / "homes"
    with pytest.raises(HarnessUnavailable) as caught:
        built(cache, source=folder)
    assert caught.value.message.startswith("codex plugin add Shop@evalfarm failed: ")
    assert [path.name for path in cache.iterdir() if not path.name.endswith((".building", ".lock"))] == []
