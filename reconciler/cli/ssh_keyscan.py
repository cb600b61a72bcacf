"""`reconciler ssh-keyscan`: print the SSH keys of hosts for a known_hosts file."""

from __future__ import annotations

import click

from reconciler.cli.errors import report_errors
from reconciler.cli.exit_codes import SUCCESS
from reconciler.git import ssh_host_keys


@click.command("ssh-keyscan")
@click.argument("hosts", metavar="HOST[:PORT]...", nargs=-1, required=True)
def command(hosts: tuple[str, ...]) -> int:
    """Print the SSH keys that HOST presents now, as lines for a known_hosts file.

    The keys are not trusted, because another machine may have answered. Compare each fingerprint on standard error with
    the documentation of the host, or with its operator. Then add the lines to the file of `known_hosts_file`.
    """
    for host in hosts:
        with report_errors():
            keys = ssh_host_keys.scan_host_keys(host)
        for key in keys:
            click.echo(key.line)
            click.echo(f"{host}: {key.kind} {key.fingerprint}", err=True)
    click.echo("compare the fingerprints with the documentation of the host before you use these lines", err=True)
    return SUCCESS
