"""Where packs come from: a server, the hub, and neither where the network is forbidden."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest

import kgkit
from kb_builders import wordnet_source
from kgkit.errors import DamagedPack, MissingExtra, NetworkForbidden, NotThere, UsageError
from kgkit.network import OFFLINE
from tests.cli_helpers import run
from tests.pack_toys import toy_pack


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """A pack of the toy and its vectors: not to be changed."""
    return toy_pack(tmp_path_factory.mktemp("pack"), "toy.tar.gz")


@contextmanager
def server(**files):
    """Serve files, by name as `toy_tar`; give the address. A file may be a tuple: its length, and content."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            content = files.get(self.path.strip("/"))
            if content is None:
                self.send_error(404)
                return
            if isinstance(content, str):
                self.send_response(302)
                self.send_header("Location", content)
                self.end_headers()
                return
            length, content = content if isinstance(content, tuple) else (len(content), content)
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{serving.server_port}"
        finally:
            serving.shutdown()
            thread.join()


def test_a_pack_is_unpacked_from_a_server_as_it_comes(pack, tmp_path):
    content = pack.read_bytes()
    with server(toy=content, moved="/toy") as address:
        for name in ("toy", "moved"):
            unpacked = kgkit.unpack(f"{address}/{name}", home=tmp_path / name)
            assert [action for _, action in unpacked.items] == ["add", "add"]
    with kgkit.open_kb("toy", home=tmp_path / "moved") as kb:
        assert kb["Apple"].label == "apple"


@pytest.mark.parametrize(
    "content", [b"The dog barked.\n", b"\x1f\x8b\x08\x08 gzip of another", bytes(20_000)]
)
def test_a_file_that_is_no_pack_is_refused_with_the_command_that_writes_one(content, tmp_path):
    (tmp_path / "pack.tar.gz").write_bytes(content)
    with pytest.raises(DamagedPack, match=r"pack\.tar\.gz"):
        kgkit.unpack(tmp_path / "pack.tar.gz", home=tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_a_server_that_has_no_such_pack_or_a_damaged_or_a_large_one_is_told(pack, tmp_path):
    content = pack.read_bytes()
    with server(short=(len(content), content[:-50]), cut=content[:-50], large=(1 << 50, b"")) as address:
        with pytest.raises(NotThere, match="404"):
            kgkit.unpack(f"{address}/none", home=tmp_path / "home")
        with pytest.raises((NotThere, DamagedPack), match=r"read to its end|ends too early"):
            kgkit.unpack(f"{address}/short", home=tmp_path / "home")
        with pytest.raises(DamagedPack, match="cut"):
            kgkit.unpack(f"{address}/cut", home=tmp_path / "home")
        with pytest.raises(NotThere, match="1,125,899,906,842,624"):
            kgkit.unpack(f"{address}/large", home=tmp_path / "home")
    assert not (tmp_path / "home").exists()


# -- the hub ----------------------------------------------------------------


@pytest.fixture
def hub(monkeypatch, pack):
    """A hub with the repositories `me/fruit` (one pack), `me/two` (two) and `me/none` (no pack)."""
    hub_module = pytest.importorskip("huggingface_hub")
    repositories = {
        "me/fruit": {"README.md": 1, "toy.tar.gz": 2000},
        "me/two": {"a.tar": 1, "b.tar": 2},
        "me/none": {"model.safetensors": 5},
    }
    requests = []

    class Api:
        def model_info(self, name, *, revision, timeout, files_metadata):
            if name not in repositories:
                raise hub_module.errors.RepositoryNotFoundError("404", response=response())
            files = [SimpleNamespace(rfilename=key, size=size) for key, size in repositories[name].items()]
            return SimpleNamespace(siblings=files, sha="abc")

    def response():
        httpx = pytest.importorskip("httpx")
        return httpx.Response(404, request=httpx.Request("GET", "https://huggingface.co"))

    def download(repository, name, *, revision):
        requests.append((repository, name, revision))
        return str(pack)

    monkeypatch.setattr(hub_module, "HfApi", Api)
    monkeypatch.setattr(hub_module, "hf_hub_download", download)
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", OFFLINE):
        monkeypatch.delenv(name, raising=False)
    return requests


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("hf:me/fruit", ("me/fruit", "toy.tar.gz", "abc")),
        ("hf:me/fruit@v1.0", ("me/fruit", "toy.tar.gz", "v1.0")),
        ("hf:me/fruit/toy.tar.gz@main", ("me/fruit", "toy.tar.gz", "main")),
        ("hf:me/two/b.tar", ("me/two", "b.tar", "abc")),
    ],
)
def test_a_pack_is_unpacked_from_the_hub_at_a_revision(hub, tmp_path, address, expected):
    assert len(kgkit.unpack(address, home=tmp_path / "home").items) == 2
    assert hub == [expected]


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("hf:fruit", UsageError, "write it as hf:ORG/NAME@REV"),
        ("hf:me/fruit@a b", UsageError, "write it as hf:ORG/NAME@REV"),
        ("hf:me/two", UsageError, r"several packs: name one, as hf:me/two/a.tar; there are: a.tar, b.tar"),
        ("hf:me/none", NotThere, "no pack at all in hf:me/none"),
        ("hf:me/fruit/none.tar", NotThere, "no pack none.tar in .*there are: toy.tar.gz"),
        ("hf:me/nobody", NotThere, "no pack hf:me/nobody, and the hub has none"),
    ],
)
def test_what_the_hub_does_not_have_is_told(hub, tmp_path, address, error, message):
    with pytest.raises(error, match=message):
        kgkit.unpack(address, home=tmp_path / "home")
    assert hub == [] and not (tmp_path / "home").exists()


def test_a_pack_of_the_hub_that_is_too_large_is_not_fetched(hub, tmp_path):
    with pytest.raises(UsageError, match=r"2,000 .*1,999"):
        kgkit.unpack("hf:me/fruit", home=tmp_path / "home", max_bytes=1999)
    assert hub == []


def test_the_variable_of_the_hub_forbids_the_hub(hub, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(NotThere, match="forbids the hub"):
        kgkit.unpack("hf:me/fruit", home=tmp_path / "home")


def test_without_the_package_of_the_hub_the_extra_is_named(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"kgkit\[neural\]"):
        kgkit.unpack("hf:me/fruit", home=tmp_path / "home")


# -- offline ----------------------------------------------------------------


@pytest.mark.parametrize(
    "source", ["http://127.0.0.1:9/toy.tar", "https://example.org/toy.tar", "hf:me/fruit"]
)
def test_no_pack_is_fetched_offline(monkeypatch, hub, tmp_path, source):
    monkeypatch.setenv(OFFLINE, "1")
    with pytest.raises(NetworkForbidden, match="KGKIT_OFFLINE"):
        kgkit.unpack(source, home=tmp_path / "home")
    done = run("unpack", source, "--home", tmp_path / "home")
    assert done.code == 3 and "KGKIT_OFFLINE forbids the network" in " ".join(done.err.split())
    assert hub == []


def test_no_encoder_is_fetched_offline(monkeypatch):
    pytest.importorskip("huggingface_hub")
    from kgkit.encoder.finding import find_model

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    monkeypatch.setenv(OFFLINE, "1")
    with pytest.raises(NetworkForbidden, match="nobody/nothing"):
        find_model("nobody/nothing")


def test_wordnet_is_not_fetched_offline_and_is_read_where_it_is(monkeypatch, tmp_path):
    monkeypatch.setenv(OFFLINE, "1")
    monkeypatch.setattr(wordnet_source, "INSTALLED", tmp_path / "none")
    monkeypatch.setattr(wordnet_source, "_from_debian", lambda *_: pytest.fail("asked for a package"))
    monkeypatch.setattr(wordnet_source, "_from_princeton", lambda *_: pytest.fail("asked for an archive"))
    with pytest.raises(NetworkForbidden, match="or name a folder"):
        wordnet_source.obtain(tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
    folder = tmp_path / "cache" / "wordnet-3.0"
    folder.mkdir(parents=True)
    for name in wordnet_source.FILES:
        (folder / name).touch()
    assert wordnet_source.obtain(tmp_path / "cache") == folder


def test_a_pack_on_the_disk_is_unpacked_offline(monkeypatch, pack, tmp_path):
    monkeypatch.setenv(OFFLINE, "1")
    assert len(kgkit.unpack(pack, home=tmp_path / "home").items) == 2
