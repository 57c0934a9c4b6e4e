import FreshetConfiguration
import FreshetControl
import FreshetEventLoop
import FreshetSystemd
import Glibc

/// The user and the groups of the running service, as other processes see them (proc(5)). The unit may give the service
/// more groups than the user database has (`SupplementaryGroups=`), so only its process shows all of them.
struct ServiceProcess: Hashable, Sendable {
    let user: UInt32
    let groups: Set<UInt32>
    /// The unit of the service, such as `freshetd.service`; nil: it runs without a unit.
    let unit: String?
    /// The process itself; nil: it was not read from proc(5).
    private(set) var identity: Identity?

    /// A process for as long as it runs: its number is used again later, but not with this start time.
    struct Identity: Hashable, Sendable {
        let number: UInt32
        /// Clock ticks since boot (field 22 of proc_pid_stat(5)).
        let startTime: UInt64

        /// - Parameter stat: the content of `/proc/PID/stat`. The name in parentheses may have any characters.
        init?(_ number: Int64, stat: String) {
            let fields = stat.utf8.lastIndex(of: UInt8(ascii: ")")).map { stat[$0...].split(separator: " ") } ?? []
            // The first of these is the parenthesis, which ends field 2.
            guard fields.count > 20, let number = UInt32(exactly: number), let time = UInt64(fields[20]) else {
                return nil
            }
            (self.number, startTime) = (number, time)
        }
    }

    /// The result of a search for the process.
    enum Search: Hashable, Sendable {
        case found(ServiceProcess)
        /// The reason, as a clause such as `freshetd does not run`.
        case missing(String)

        var process: ServiceProcess? {
            guard case .found(let process) = self else { return nil }
            return process
        }
    }

    /// The name of the daemon's process and of its unit.
    private static let name = "freshetd"
    static let standardUnit = "freshetd.service"
    /// The maximum size of a file below `/proc` that is read. The longest line has 65,536 groups.
    private static let sizeLimit = 1 << 20

    /// The credentials of this process, for a user's own service, which has the same.
    static func ofThisProcess() -> ServiceProcess {
        var groups: Set<UInt32> = [getegid()]
        let count = getgroups(0, nil)
        if count > 0 {
            var list = [gid_t](repeating: 0, count: Int(count))
            let filled = getgroups(count, &list)
            groups.formUnion(list.prefix(max(0, Int(filled))))
        }
        return ServiceProcess(user: geteuid(), groups: groups, unit: nil)
    }

    private init(user: UInt32, groups: Set<UInt32>, unit: String?) {
        self.user = user
        self.groups = groups
        self.unit = unit
    }

    /// Parses `/proc/PID/status` and `/proc/PID/cgroup`; nil: the process is not a daemon.
    init?(status: String, cgroup: String) {
        var fields: [Substring: [Substring]] = [:]
        for line in status.split(separator: "\n") {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[line[..<colon]] = line[line.index(after: colon)...].split { $0 == " " || $0 == "\t" }
        }
        // The numbers are: real, effective, saved, of the file system.
        guard fields["Name"]?.first.map(String.init) == Self.name,
            let user = fields["Uid"]?.dropFirst().first.flatMap({ UInt32($0) }),
            let group = fields["Gid"]?.dropFirst().first.flatMap({ UInt32($0) })
        else { return nil }
        self.init(
            user: user, groups: Set(fields["Groups", default: []].compactMap { UInt32($0) } + [group]),
            unit: Self.unit(cgroup))
    }

    /// The unit of the systemd hierarchy, which is the last component of its path.
    private static func unit(_ cgroup: String) -> String? {
        for line in cgroup.split(separator: "\n") where line.hasPrefix("0::") || line.contains(":name=systemd:") {
            if let last = line.split(separator: "/").last, last.hasSuffix(".service") { return String(last) }
        }
        return nil
    }

    /// Reads a process; nil: it does not exist, or is not a daemon. Blocks.
    init?(process identifier: Int64) {
        guard let status = Self.text(of: "/proc/\(identifier)/status") else { return nil }
        self.init(status: status, cgroup: Self.text(of: "/proc/\(identifier)/cgroup") ?? "")
        identity = Self.text(of: "/proc/\(identifier)/stat").flatMap { Identity(identifier, stat: $0) }
    }

    /// Finds the process of the service whose configuration these options name. Blocks.
    ///
    /// A connection to a socket of the service manager would start the service, so such a socket is not used: the
    /// service is found by the processes of its unit.
    static func find(_ options: DaemonOptions) -> Search {
        let named = options.socket ?? options.environment["FRESHET_SOCKET"]
        if let named, !named.isEmpty { return ask(named) }
        guard options.checksSystemService else { return .found(ofThisProcess()) }
        for hierarchy in ["/sys/fs/cgroup", "/sys/fs/cgroup/systemd"] {
            let list = text(of: "\(hierarchy)/system.slice/\(standardUnit)/cgroup.procs") ?? ""
            let processes = list.split(separator: "\n").lazy.compactMap { Int64($0) }
            if let found = processes.compactMap(ServiceProcess.init(process:)).first { return .found(found) }
        }
        let directories = try? ServiceDirectories(name: "freshet", environment: options.environment, userID: 0)
        guard let runtime = options.runtimeDirectory ?? directories?.runtime else {
            return .missing("freshetd does not run")
        }
        let path = "\(runtime)/\(ControlInterface.name)"
        var status = stat()
        // The service manager's socket belongs to root; the daemon's own to the service's user.
        guard stat(path, &status) == 0, status.st_uid != 0 else { return .missing("freshetd does not run") }
        return ask(path)
    }

    /// Asks the daemon for its process.
    private static func ask(_ socket: String) -> Search {
        do throws(ControlClient.Failure) {
            let client = try ControlClient(path: socket, silence: .seconds(2), probeTimeout: .seconds(1))
            client.replyTimeout = .seconds(3)
            let identifier = try client.daemon().pid
            // A daemon in a container has another number here.
            return ServiceProcess(process: identifier).map(Search.found)
                ?? .missing("the process of freshetd is not visible here")
        } catch .notRunning {
            return .missing("freshetd does not run")
        } catch .noAccess {
            return .missing("this user may not connect to freshetd")
        } catch {
            return .missing("freshetd does not answer")
        }
    }

    /// The content of a file of the kernel; nil: it cannot be read.
    private static func text(of path: String) -> String? {
        guard let file = try? OwnedDescriptor(open(path, O_RDONLY | O_CLOEXEC), of: "open", subject: path) else {
            return nil
        }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4_096)
        while bytes.count < sizeLimit {
            let count = read(file.rawValue, &piece, piece.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { return String(decoding: bytes, as: UTF8.self) }
            bytes += piece[..<count]
        }
        return nil
    }
}

extension DaemonOptions {
    /// Whether the system's service uses the configuration that is checked. For a user without an own configuration, a
    /// check reads the system's.
    var checksSystemService: Bool { isSystemService || ConfigurationLocation.searchPath(self).isSystemPath }
}
