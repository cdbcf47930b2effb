"""The recipe of docs/howto/files.md: decide and tune a query of PostgreSQL, streamed to Parquet."""

import os
import shutil
import subprocess

import numpy as np
import pyarrow as pa
import pytest

from argmaxf import maximize_empirical_f, maximize_expected_f
from argmaxf.cli.app import run

adbc = pytest.importorskip("adbc_driver_postgresql.dbapi")
POSTGRES = shutil.which("postgres") and shutil.which("initdb") and shutil.which("pg_ctl")
pytestmark = pytest.mark.skipif(not POSTGRES, reason="PostgreSQL is not installed")
NOBODY = {"user": "nobody"} if hasattr(os, "geteuid") and os.geteuid() == 0 else {}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """A private server in a temporary folder that listens on a socket only; root may not run it."""
    folder = tmp_path_factory.mktemp("pg", numbered=True)
    sockets = tmp_path_factory.mktemp("s")
    for each in (folder, sockets):
        if NOBODY:
            shutil.chown(each, **NOBODY)
        for parent in [each, *each.parents][:4]:
            if parent.stat().st_uid == os.geteuid():
                parent.chmod(parent.stat().st_mode | 0o111)
    data = folder / "data"
    quiet = {"check": True, "capture_output": True, "text": True, "cwd": folder, **NOBODY}
    subprocess.run(["initdb", "-D", data, "-U", "tester", "-A", "trust", "--no-sync"], **quiet)
    options = f"-c listen_addresses= -c unix_socket_directories={sockets} -c fsync=off"
    start = ["pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options]
    subprocess.run([*start, "start"], **quiet)
    try:
        yield f"postgresql:///postgres?host={sockets}&user=tester"
    finally:
        subprocess.run(["pg_ctl", "-D", data, "-m", "immediate", "stop"], **quiet)


@pytest.mark.slow
def test_a_query_of_postgresql_is_decided_and_tuned_in_batches(database, tmp_path, capsys):
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 5.0, 50_000)
    y = rng.random(p.size) < p
    table = pa.table({"id": np.arange(p.size), "p": p, "y": y})
    path, sizes = tmp_path / "scores.parquet", []
    with adbc.connect(database) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("scores", table)
        hint = "adbc.postgresql.batch_size_hint_bytes"
        cursor.adbc_statement.set_options(**{hint: str(1 << 16)})
        cursor.execute("SELECT id, p, y FROM scores WHERE id % 2 = 0")
        reader = cursor.fetch_record_batch()
        with pq.ParquetWriter(path, reader.schema) as writer:
            for batch in reader:
                sizes.append(batch.num_rows)
                writer.write_batch(batch)
    even = np.arange(p.size) % 2 == 0
    assert sum(sizes) == even.sum()
    assert max(sizes) < 10_000  # the result is never held
    assert run(["decide", str(path), "-p", "p", "--threshold-only"]) == 0
    found = float(capsys.readouterr().out)
    assert np.count_nonzero(p[even] >= found) == maximize_expected_f(p[even]).k
    assert run(["tune", str(path), "--label", "y", "--score", "p", "--threshold-only"]) == 0
    assert float(capsys.readouterr().out) == maximize_empirical_f(y[even], p[even]).threshold
