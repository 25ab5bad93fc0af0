"""Two hosts, alpha (10.77.0.1) and beta (10.77.0.2), that are network namespaces of this machine, each of which knows itself as 127.0.1.1, as
Debian does; runs a command there, with HOSTS=alpha=PID,beta=PID. All of it ends with this process.

    unshare -rnmu --fork --kill-child python3 two_hosts.py FOLDER COMMAND...
"""

import os
import subprocess
import sys

SETTLE = "ip link set lo up; hostname {name}; mount --bind {folder}/hosts.{name} /etc/hosts; echo ready; exec sleep 1000"


def host(folder, name, other, number):
    with open(f"{folder}/hosts.{name}", "w") as file:
        file.write(f"127.0.0.1 localhost\n127.0.1.1 {name}\n10.77.0.{3 - number} {other}\n")
    process = subprocess.Popen(["unshare", "-nmu", "sh", "-ec", SETTLE.format(name=name, folder=folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def join(first, second):
    inside = ["nsenter", "-t", str(first.pid), "-n", "ip"]
    subprocess.run([*inside, *f"link add veth0 type veth peer name veth0 netns {second.pid}".split()], check=True)
    for number, process in (1, first), (2, second):
        inside = ["nsenter", "-t", str(process.pid), "-n", "ip"]
        subprocess.run([*inside, "addr", "add", f"10.77.0.{number}/24", "dev", "veth0"], check=True)
        subprocess.run([*inside, "link", "set", "veth0", "up"], check=True)


alpha, beta = host(sys.argv[1], "alpha", "beta", 1), host(sys.argv[1], "beta", "alpha", 2)
join(alpha, beta)
code = subprocess.run(sys.argv[2:], env={**os.environ, "HOSTS": f"alpha={alpha.pid},beta={beta.pid}"}, check=False).returncode
alpha.kill()
beta.kill()
sys.exit(code)
