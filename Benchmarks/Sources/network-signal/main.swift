// network-signal SOCKET: follows the network with FreshetSystemSignals, and sends a datagram to SOCKET each time that a
// waiting task receives the signal `network`.
import FreshetEventLoop
import FreshetSignals
import FreshetSystemSignals
import Glibc

guard CommandLine.arguments.count == 2 else { exit(2) }
let socketDescriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
var name = sockaddr_un()
name.sun_family = sa_family_t(AF_UNIX)
withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: CommandLine.arguments[1].utf8.prefix($0.count - 1)) }
let ear = name

let loop = try EventLoop()
let monitor = NetworkMonitor(loop)
let watch = monitor.watch(.elsewhere)
let hearer = Task(executorPreference: loop) {
    for await _ in watch.signal {
        withUnsafeBytes(of: ear) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { address in
                _ = sendto(socketDescriptor, "1", 1, Int32(MSG_NOSIGNAL), address.baseAddress, socklen_t(bytes.count))
            }
        }
    }
}
loop.run()
withExtendedLifetime((monitor, hearer)) {}
