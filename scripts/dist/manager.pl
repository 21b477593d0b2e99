#!/usr/bin/perl
# The part of systemd that flashweir.service and flashweir.socket use, for a root in which systemd does not run:
# manager.pl COMMAND [ARGUMENT...], as the user `flashweir`, with the unit's ListenStream=80 as descriptor 3. Perl, because every
# Debian root has it. SIGUSR1 starts the command; its id is then in /run/flashweir.pid, and /run/flashweir.ready appears when it
# has said READY=1.
use strict;
use warnings;
use Fcntl;
use Socket qw(:all);

my @command = @ARGV;
# The socket is the first file that is opened: descriptor 3, as `LISTEN_FDS` means it.
$^F = 3;
socket(my $clients, AF_INET6, SOCK_STREAM, IPPROTO_TCP) or die "socket: $!";
fileno($clients) == 3 or die "the socket is not descriptor 3";
setsockopt($clients, SOL_SOCKET, SO_REUSEADDR, 1) or die "SO_REUSEADDR: $!";
setsockopt($clients, IPPROTO_IPV6, IPV6_V6ONLY, 0) or die "IPV6_V6ONLY: $!";
bind($clients, pack_sockaddr_in6(80, IN6ADDR_ANY)) or die "port 80: $!";
listen($clients, 4096) or die "listen: $!";

my $notify = "/run/flashweir.notify";
unlink $notify;
socket(my $messages, AF_UNIX, SOCK_DGRAM, 0) or die "socket: $!";
fcntl($messages, F_SETFD, FD_CLOEXEC) or die "FD_CLOEXEC: $!";
bind($messages, pack_sockaddr_un($notify)) or die "$notify: $!";
chmod 0666, $notify;

my $starts = 0;
$SIG{USR1} = sub { $starts++ };
$SIG{CHLD} = "IGNORE";
write_file("/run/flashweir.manager", $$);

while (1) {
  while ($starts > 0) {
    $starts--;
    unlink "/run/flashweir.ready";
    my $child = fork() // die "fork: $!";
    if ($child == 0) {
      @ENV{qw(LISTEN_PID LISTEN_FDS NOTIFY_SOCKET STATE_DIRECTORY)} = ($$, 1, $notify, "/var/lib/flashweir");
      exec "setpriv", "--reuid", "flashweir", "--regid", "flashweir", "--clear-groups", "--no-new-privs",
        "--inh-caps=-all", "--bounding-set=-all", @command or die "setpriv: $!";
    }
    write_file("/run/flashweir.pid", $child);
  }
  # Not recv alone: a signal may come just before it.
  my $readable = "";
  vec($readable, fileno($messages), 1) = 1;
  next unless select($readable, undef, undef, 0.1) > 0;
  defined(recv($messages, my $message, 256, 0)) or next;
  write_file("/run/flashweir.ready", $message) if $message =~ /^READY=1$/m;
}

sub write_file {
  my ($name, $text) = @_;
  open(my $file, ">", "$name.part") or die "$name: $!";
  print $file "$text\n";
  close($file);
  rename("$name.part", $name) or die "$name: $!";
}
