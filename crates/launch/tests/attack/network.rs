//! Attacks over the network.

use std::io::Read as _;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::time::Duration;

use super::{Attack, Findings};

pub(super) const ATTACKS: &[(&str, Attack)] = &[("network", network), ("special-sockets", special_sockets)];

/// Arguments: a TCP port the host listens on, and the name of an abstract socket it listens on.
fn network(findings: &mut Findings, arguments: &[String]) {
    let port: u16 = arguments[0].parse().unwrap();
    let abstract_name = UnixAddress::from_abstract_name(&arguments[1]).unwrap();
    findings.must_fail("connect to the host's abstract socket", UnixStream::connect_addr(&abstract_name));
    for address in [
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
        "1.1.1.1:53".into(),
        "169.254.169.254:80".into(),
    ] {
        let address: SocketAddr = address.parse().unwrap();
        let connected = TcpStream::connect_timeout(&address, Duration::from_millis(500));
        findings.must_fail(&format!("connect to {address}"), connected);
    }
    let sent = UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"x", "8.8.8.8:53"));
    findings.must_fail("send a datagram", sent);
    for path in
        ["/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket", "/tmp/.X11-unix/X0"]
    {
        findings.must_fail(&format!("connect to {path}"), UnixStream::connect(path));
    }
    let mut table = String::new();
    let read = std::fs::File::open("/proc/net/dev").and_then(|mut file| file.read_to_string(&mut table));
    let interfaces = table.lines().filter(|line| line.contains(':')).count();
    findings.must_hold(&format!("no interface but loopback: {interfaces}"), read.is_err() || interfaces <= 1);
}

fn special_sockets(findings: &mut Findings, _: &[String]) {
    for (name, family, kind, protocol) in [
        ("vsock", libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        ("packet", libc::AF_PACKET, libc::SOCK_RAW, 0x0300),
        ("packet datagram", libc::AF_PACKET, libc::SOCK_DGRAM, 0),
        ("raw", libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        ("raw 6", libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6),
        ("raw, close-on-exec", libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_ICMP),
        ("crypto", libc::AF_ALG, libc::SOCK_SEQPACKET, 0),
        ("bluetooth", libc::AF_BLUETOOTH, libc::SOCK_RAW, 0),
        ("key", libc::AF_KEY, libc::SOCK_RAW, 2),
        ("can", libc::AF_CAN, libc::SOCK_RAW, 1),
        ("xdp", libc::AF_XDP, libc::SOCK_RAW, 0),
        ("audit", libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT),
        ("kernel events", libc::AF_NETLINK, libc::SOCK_DGRAM, libc::NETLINK_KOBJECT_UEVENT),
        ("netfilter", libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER),
    ] {
        // SAFETY: no pointers.
        let answer = unsafe { libc::socket(family, kind, protocol) };
        findings.must_filter(&format!("make a {name} socket"), answer.into());
    }
    for (name, family, kind) in [
        ("local", libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC),
        ("internet", libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK),
        ("route", libc::AF_NETLINK, libc::SOCK_RAW),
    ] {
        // SAFETY: no pointers.
        let answer = unsafe { libc::socket(family, kind, 0) };
        findings.must_hold(&format!("{name} sockets can be made"), answer >= 0);
    }
}
