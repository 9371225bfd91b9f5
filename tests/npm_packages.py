"""Packages of others that tests use: installed from a package-lock.json, which pins their contents by SHA-512,
into the build folder.  Without Node.js or a network a test is skipped (exit status 77); with PLUMB_CI=1 in the
environment nothing may be skipped for want of them."""

import os
import shutil
import subprocess
import sys

SKIPPED = 77


def skip(why):
    if os.environ.get("PLUMB_CI") == "1":
        print(f"FAIL {why}, and nothing may be skipped here\n0 passed, 1 failed")
        sys.exit(1)
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def same_file(a, b):
    try:
        with open(a, "rb") as left, open(b, "rb") as right:
            return left.read() == right.read()
    except OSError:
        return False


def install(source, folder):
    """Puts the packages that `source`/package-lock.json names below `folder`/node_modules, unless they are
    there; that is returned."""
    modules = os.path.join(folder, "node_modules")
    lock = os.path.join(source, "package-lock.json")
    done = os.path.join(folder, "installed.json")  # the lock file that was installed last
    if same_file(lock, done):
        return modules
    if not shutil.which("npm") or not shutil.which("node"):
        skip("no npm here")
    os.makedirs(folder, exist_ok=True)
    if os.path.exists(done):
        os.remove(done)
    shutil.copy(os.path.join(source, "package.json"), folder)
    shutil.copy(lock, folder)
    # --force: versions of Node.js and platforms are looked at less strictly, contents are not.
    npm = subprocess.run(
        ["npm", "ci", "--force", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline",
         "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000", "--loglevel=error"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, check=False)
    if npm.returncode != 0 and "EINTEGRITY" in npm.stderr:
        print(f"FAIL other packages than package-lock.json names:\n{npm.stderr}\n0 passed, 1 failed")
        sys.exit(1)
    if npm.returncode != 0:
        skip(f"npm installs nothing: {(npm.stderr.strip().splitlines() or ['no reason'])[0]}")
    shutil.copy(lock, done)
    return modules
