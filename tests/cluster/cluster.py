#!/usr/bin/env python3
"""A cluster on one machine: hosts that are network namespaces, joined by a bridge.

usage: cluster.py [--hosts N] [--ranks M] [--by-node] [--delay MS] [--mbit RATE]
                  [--congestion NAME] PROGRAM [ARG..]

Runs PROGRAM under mpirun with M processes on each of N hosts. Each host has its own name, address
and /dev/shm, so that processes share memory only within a host. --by-node assigns ranks to the
hosts round-robin; --delay is the one-way delay; --mbit limits the rate at which a host sends;
--congestion is TCP's congestion control (reno; bbr and cubic where the machine permits them). Where
the kernel has netem, netem delays packets; elsewhere a program that replaces the bridge does
(relay.cpp). Nothing is visible outside: all processes are in one process namespace, which ends with
this script, however it ends.

As a module: `enclose()` first, then `with Cluster(hosts) as cluster: cluster.run(..)`.
"""

import argparse
import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
AGENT = HERE / "agent.sh"
ENCLOSED = "CLEAVE_CLUSTER"
SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_plm_rsh_agent": f"sh {AGENT}",
    "OMPI_MCA_btl": "self,vader,tcp",
    "OMPI_MCA_btl_tcp_if_include": "eth0",
    "OMPI_MCA_oob_tcp_if_include": "eth0",
    "OMPI_MCA_hwloc_base_binding_policy": "none",  # hosts do not know which cores the others use
    "OPENBLAS_NUM_THREADS": "1",
}
NAMESPACES = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child",
              "--mount-proc"]


def output_of(*command):
    job = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT)
    return job.returncode, job.stdout.strip()


def obstacle():
    """The reason why hosts cannot be made here; None if they can."""
    for program in ("unshare", "nsenter", "ip", "tc", "mpirun"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    code, said = output_of("mpirun", "--version")
    if "Open MPI" not in said:
        return "mpirun is not Open MPI's"
    trial = ("mount -t tmpfs tmpfs /dev/shm && ip link add name trial0 type bridge && "
             "ip link add name trial1 type veth peer name trial2")
    code, said = output_of(*NAMESPACES, "sh", "-c", trial)
    return f"namespaces are not allowed ({said})" if code != 0 else None


def enclose():
    """Restarts the script inside new namespaces and exits with its status; returns only inside
    them. Everything that the script leaves behind is removed when it ends."""
    if ENCLOSED in os.environ:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", os.environ[ENCLOSED]], check=True)
        return
    with tempfile.TemporaryDirectory(prefix="cleave-cluster-") as folder:
        job = subprocess.Popen([*NAMESPACES, sys.executable, *sys.argv],
                               env=dict(os.environ, **{ENCLOSED: folder}))
        signal.signal(signal.SIGTERM, lambda *_: job.terminate())
        with contextlib.suppress(KeyboardInterrupt):
            job.wait()
        if job.poll() is None:
            job.kill()
            job.wait()
    sys.exit(job.returncode if job.returncode >= 0 else 1)


def kernel_delays():
    """Whether the kernel has netem."""
    code, _ = output_of("unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem",
                        "delay", "1ms")
    return code == 0


class Cluster:
    def __init__(self, hosts, delay_ms=0.0, mbit=0.0, congestion=None):
        self.names = [f"host{h}" for h in range(hosts)]
        self.folder = pathlib.Path(os.environ[ENCLOSED])
        self.holders = []
        self.delay_ms, self.mbit, self.congestion = delay_ms, mbit, congestion
        self.delayed_by = None  # or the name of what delays packets
        if delay_ms > 0 or mbit > 0:
            self.delayed_by = "netem" if kernel_delays() else "relay"
        self.relay = None

    def __enter__(self):
        table = self.folder / "hosts"
        table.write_text("127.0.0.1 localhost\n" + "".join(
            f"{self.address(h)} {name}\n" for h, name in enumerate(self.names)))
        self._do("mount", "--bind", str(table), "/etc/hosts")
        if self.delayed_by != "relay":
            self._do("ip", "link", "add", "name", "cables", "type", "bridge")
            self._do("ip", "link", "set", "cables", "up")
        for h in range(len(self.names)):
            self._add(h)
        if self.delayed_by == "relay":
            self._start_relay()
        return self

    def __exit__(self, *_):
        if self.relay is not None:
            self.relay.kill()
            self.relay.wait()
        for host in range(len(self.names)):
            for process in self.processes_on(host):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        for holder in self.holders:
            holder.wait()
        for host in range(len(self.holders)):
            output_of("ip", "link", "delete", f"cable{host}")
        self._do("umount", "/etc/hosts")
        if self.delayed_by != "relay":
            self._do("ip", "link", "delete", "cables")

    @staticmethod
    def address(host):
        return f"10.0.0.{host + 1}"

    @staticmethod
    def _do(*command):
        code, said = output_of(*command)
        if code != 0:
            raise RuntimeError(f"{' '.join(command)}: {said}")

    def _inside(self, host, *command):
        self._do("nsenter", "--target", str(self.holders[host].pid), "--net", "--", *command)

    def _add(self, host):
        """Starts a process that holds the namespaces of a host, and connects the host's cable."""
        begin = (f"mount -t tmpfs tmpfs /dev/shm && hostname {self.names[host]} && "
                 "ip link set lo up && echo ready && exec sleep infinity")
        holder = subprocess.Popen(["unshare", "--net", "--mount", "--uts", "sh", "-c", begin],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.holders.append(holder)
        if holder.stdout.readline() != "ready\n":
            raise RuntimeError(f"{self.names[host]} does not start")
        (self.folder / self.names[host]).write_text(str(holder.pid))
        self._do("ip", "link", "add", "name", f"cable{host}", "type", "veth", "peer", "name",
                 "eth0", "netns", str(holder.pid))
        bridge = ["master", "cables"] if self.delayed_by != "relay" else []
        self._do("ip", "link", "set", f"cable{host}", *bridge, "up")
        self._inside(host, "ip", "address", "add", f"{self.address(host)}/24", "dev", "eth0")
        self._inside(host, "ip", "link", "set", "eth0", "up")
        if self.congestion is not None:
            self._inside(host, "sh", "-c", 'echo "$1" >/proc/sys/net/ipv4/tcp_congestion_control',
                         "sh", self.congestion)
        if self.delayed_by == "netem":
            rate = ["rate", f"{self.mbit}mbit"] if self.mbit > 0 else []
            self._inside(host, "tc", "qdisc", "add", "dev", "eth0", "root", "netem", "delay",
                         f"{self.delay_ms}ms", "limit", "100000", *rate)

    def _start_relay(self):
        program = self.folder / "relay"
        if not program.exists():
            compiler = shlex.split(os.environ.get("CXX", "c++"))
            self._do(*compiler, "-std=c++20", "-O1", "-o", str(program), str(HERE / "relay.cpp"))
        cables = [f"cable{h}" for h in range(len(self.names))]
        self.relay = subprocess.Popen([program, str(self.delay_ms * 1e3), str(self.mbit), *cables],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if self.relay.stdout.readline() != "ready\n":
            raise RuntimeError("the relay between the hosts does not start")

    def on(self, host, command):
        """The command line that runs a command on a host."""
        return ["nsenter", "--target", str(self.holders[host].pid), "--net", "--mount", "--uts",
                f"--wd={os.getcwd()}", "--", *map(str, command)]

    def start(self, ranks, command, by_node=False, **settings):
        """Starts mpirun on the first host, with that many ranks on each host."""
        hosts = ",".join(f"{name}:{ranks}" for name in self.names)
        launch = ["mpirun", "--host", hosts, "-n", str(ranks * len(self.names)),
                  "--map-by", "node" if by_node else "slot", *map(str, command)]
        environment = dict(os.environ, TMPDIR=str(self.folder), **SETTINGS)
        environment.update(settings)
        return subprocess.Popen(self.on(0, launch), env=environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def run(self, ranks, command, seconds=600, **options):
        """@return the exit status (None if it timed out) and the output"""
        job = self.start(ranks, command, **options)
        try:
            said, _ = job.communicate(timeout=seconds)
            return job.returncode, said
        except subprocess.TimeoutExpired:
            job.kill()
            for host in range(len(self.names)):
                self._kill_ranks(host)
            said, _ = job.communicate()
            return None, said

    def _kill_ranks(self, host):
        for process in self.processes_on(host):
            if process != self.holders[host].pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def processes_on(self, host):
        """All processes of a host, including the one that holds its namespaces."""
        network = os.stat(f"/proc/{self.holders[host].pid}/ns/net").st_ino
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if os.stat(entry / "ns" / "net").st_ino == network:
                    found.append(int(entry.name))
        return found

    def unplug(self, host):
        """Unplugs the cable of a host: packets are lost in both directions."""
        self._do("ip", "link", "set", f"cable{host}", "down")

    def plug(self, host):
        self._do("ip", "link", "set", f"cable{host}", "up")

    def halt(self, host):
        """Stops all processes of a host; its kernel still answers."""
        for process in self.processes_on(host):
            os.kill(process, signal.SIGSTOP)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--by-node", action="store_true")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--mbit", type=float, default=0.0)
    parser.add_argument("--congestion")
    parser.add_argument("--obstacle", action="store_true", help="only say why there can be none")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.obstacle:
        print(obstacle() or "")
        return 0
    enclose()
    with Cluster(options.hosts, options.delay, options.mbit, options.congestion) as cluster:
        if cluster.delayed_by is not None:
            limit = f", at most {options.mbit} Mbit/s" if options.mbit > 0 else ""
            print(f"between hosts: {options.delay} ms each way{limit} ({cluster.delayed_by})",
                  file=sys.stderr)
        job = cluster.start(options.ranks, options.command, by_node=options.by_node)
        for line in job.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
        return job.wait()


if __name__ == "__main__":
    sys.exit(main())
