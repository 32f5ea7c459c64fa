#!/usr/bin/env python3
"""Parameters of a job file, whatever they hold: quoting_test.py BUILD

1,000 generated values in all kinds of quotes go through submit_job --dry-run, and its script runs with a pretended Slurm.
Plain values are text, which bash reads as it reads the same commands with the value typed in. Others are themselves inside
double quotes, and refused elsewhere. Secrets are themselves everywhere, stand in neither script nor words, and their file
is its owner's and gone in the end.
"""
import json
import pathlib
import random
import re
import shlex
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from hostile_values import PIECES, PRETENDED, job_environment, planted, pretend, value  # noqa: E402

CASES, CASES_OF_A_JOB, REFUSED_OF_A_JOB = 1000, 100, 8
PRINT = "printf '%s\\0' {} >>\"$FOUND\""
# Text of a command with <> for the value: the word that a value becomes if it is not plain. None: it is refused.
PLACES = {"<>": None, "pre<>post": None, "'<>'": None, "'a b'<>\"c\"": None, "'it'\\''s <>'": None,
          "\"x <> y\"": "x {} y", "\"$EMPTY<>\"": "{}", "\"\\\"<>\"": "\"{}", "\"$(printf %s. \"<>\")\"": "{}."}
PLAIN = re.compile(r"[A-Za-z0-9_./:=,@%+~ \t-]*")


PLAIN_PIECES = [piece for piece in PIECES if PLAIN.fullmatch(piece)]


# The cases of a job, (value, place): half of the values are plain, and half of the others in double quotes.
def cases_of(source):
    quoted = [place for place, word in PLACES.items() if word]
    for _ in range(CASES_OF_A_JOB // 2):
        yield "".join(source.choices(PLAIN_PIECES, k=source.randrange(6))), source.choice(list(PLACES))
        yield value(source), source.choice(source.choice([list(PLACES), quoted]))


def is_refused(text, place):
    return not PLAIN.fullmatch(text) and PLACES[place] is None


# Bash's own reading of the commands with plain values typed in, and the words of other values.
def words_wanted(cases, folder, environment):
    commands = [PRINT.format(place.replace("<>", text) if PLAIN.fullmatch(text) else
                             shlex.quote(PLACES[place].format(text))) for text, place in cases]
    wanted = folder / "wanted"
    wanted.write_bytes(b"")
    subprocess.run(["bash"], input="\n".join(commands).encode(), cwd=folder, check=True,
                   env=environment | {"FOUND": str(wanted)})
    return wanted.read_bytes().decode().split("\0")[:-1]


def yaml(text):
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7f")


def job_file(cases, output, secret):
    lines = ["protocolVersion: 2", "name: quoting", "type: job", "parameters:"]
    lines += [f"  v{number}: {yaml(text)}" for number, (text, _) in enumerate(cases)]
    lines += ["secrets:", f"  token: {yaml(secret)}", "taskRoles:", "  worker:", "    resourcePerInstance: {cpu: 1}",
              "    commands:"]
    for number, (_, place) in enumerate(cases):
        lines.append("      - " + yaml(PRINT.format(place.replace("<>", f"<% $parameters.v{number} %>"))))
    lines.append("      - " + yaml("printf '%s\\0' <% $secrets.token %> >>\"$FOUND\""))
    lines += ["extras:", f"  lockstep: {{world: [worker], output: {yaml(output)}}}"]
    return "\n".join(lines) + "\n"


def main(build):
    programs = pathlib.Path(build).resolve() / "bin"
    source = random.Random(15)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "it's a \"folder\" $(touch PWNED)"
        pretend(folder / "slurm", PRETENDED)
        environment = job_environment(folder / "slurm") | {"FOUND": str(folder / "found")}
        for job in range(CASES // CASES_OF_A_JOB):
            cases = list(cases_of(source))
            for case in [case for case in cases if is_refused(*case)][:REFUSED_OF_A_JOB]:
                refused_value(programs, folder, case)
            cases = [case for case in cases if not is_refused(*case)]
            secret = f"hunter2-{job}" + value(source)
            output = "runs/" + value(source).replace("<%", "")
            (folder / "job.yaml").write_text(job_file(cases, output, secret), newline="")
            shown = subprocess.run([programs / "submit_job", "job.yaml", "--dry-run"], cwd=folder, capture_output=True,
                                   check=False)
            assert shown.returncode == 0, (job, shown.stderr)
            assert b"hunter2" not in shown.stdout + shown.stderr, job
            header = shown.stdout.split(b"library=")[0]
            assert b"PWNED" not in header and header.count(b"#SBATCH") == 5, header
            secrets = folder / "SECRETS"
            secrets.write_text("export LOCKSTEP_SECRET_token=" + "'" + secret.replace("'", "'\\''") + "'\n", newline="")
            secrets.chmod(0o600)
            (folder / "found").write_bytes(b"")
            with open(folder / "job.out", "wb") as log:
                ran = subprocess.run(["bash"], input=shown.stdout, cwd=folder, env=environment, stdout=log, stderr=log,
                                     check=False)
            words = (folder / "job.out").read_bytes()
            assert ran.returncode == 0, (job, words.decode(errors="replace"))
            assert b"hunter2" not in words and not secrets.exists(), words
            found = (folder / "found").read_bytes().decode().split("\0")[:-1]
            wanted = words_wanted(cases, folder, environment) + [secret]
            for number, (there, want) in enumerate(zip(found, wanted)):
                assert there == want, (job, number, there, want)
            assert len(found) == len(wanted), (job, len(found))
        assert not planted(pathlib.Path(name)), planted(pathlib.Path(name))
        refused_submissions(programs, folder, environment)
    print(f"{CASES} values were themselves or refused")


def refused_value(programs, folder, case):
    (folder / "job.yaml").write_text(job_file([case], "runs/x", "hunter2"), newline="")
    ran = subprocess.run([programs / "submit_job", "job.yaml", "--dry-run"], cwd=folder, capture_output=True, check=False)
    assert ran.returncode == 2 and not ran.stdout, (case, ran)
    assert b"line 12: " in ran.stderr and b'"$LOCKSTEP_PARAMETER_v0"' in ran.stderr, (case, ran)


# What sbatch is given is what --dry-run shows, and secrets are its owner's alone while the job may need them.
def refused_submissions(programs, folder, environment):
    (folder / "site.profile").write_text("account=vision\nmail_type=END\n")
    environment = environment | {"LOCKSTEP_SITE": str(folder / "site.profile")}
    options = ["--", "--comment=it's  a", "--exclusive"]
    (folder / "job.yaml").write_text(job_file([("a b", "<>")], "runs/x", "hunter2"), newline="")
    for code in (0, 1):
        for old in folder.glob(".quoting.*.secrets"):
            old.unlink()
        (folder / "slurm" / "sbatch").write_text(
            f'#!/usr/bin/env bash\ncat >taken\nprintf "%s\\0" "$@" >words\n(({code})) || echo 1\nexit {code}\n')
        (folder / "slurm" / "sbatch").chmod(0o755)
        ran = subprocess.run([programs / "submit_job", "job.yaml", *options], cwd=folder, env=environment,
                             capture_output=True, text=True, check=False)
        kept = list(folder.glob(".quoting.*.secrets"))
        assert "hunter2" not in ran.stdout + ran.stderr + (folder / "taken").read_text(), ran
        if code == 0:
            assert ran.returncode == 0 and len(kept) == 1, (ran, kept)
            assert stat.S_IMODE(kept[0].stat().st_mode) == 0o600, oct(kept[0].stat().st_mode)
            shown = subprocess.run([programs / "submit_job", "job.yaml", "--dry-run", *options], cwd=folder,
                                   env=environment, capture_output=True, text=True, check=True)
            taken = (folder / "taken").read_text().replace(kept[0].name, "SECRETS")
            assert taken.rstrip("\n") == shown.stdout.rstrip("\n"), (taken, shown)
            words = re.sub(r"submit_job:\w+", "submit_job:NUMBER", (folder / "words").read_text()).split("\0")[:-1]
            lines = [line for line in shown.stderr.splitlines() if "options of sbatch:" in line]
            read = subprocess.run(["bash", "-c", f"printf '%s\\0' {lines[0].partition('options of sbatch:')[2]}"],
                                  capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
            assert read == words and "--account=vision" in words, (lines, words)
        else:
            assert ran.returncode == 2 and not kept, (ran, kept)
            assert "sbatch refused the job" in ran.stderr, ran
    (folder / "slurm" / "sbatch").write_text("#!/usr/bin/env bash\ntouch submitted\n")
    (folder / "job.yaml").write_text("protocolVersion: 2\nname: a\ntype: job\nextra: 1\n")
    ran = subprocess.run([programs / "submit_job", "job.yaml"], cwd=folder, env=environment, capture_output=True, text=True,
                         check=False)
    assert ran.returncode == 2 and "'job.yaml'" in ran.stderr and "line 4: " in ran.stderr and "'extra'" in ran.stderr, ran
    assert not (folder / "submitted").exists()


if __name__ == "__main__":
    main(sys.argv[1])
