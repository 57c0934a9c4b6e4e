import ControlTestSupport
import FreshetControl
import FreshetVarlink
import TestSupport
import Testing

/// Callers of the system daemon (user 990, group 50).
private enum Caller: String, CaseIterable {
    case root
    case member = "the group `freshet`"
    case daemon = "the daemon's own user"
    case nobody = "everybody else"

    var peers: [VarlinkPeer] {
        switch self {
        case .root: [peer(0, 0)]
        case .member: [peer(1_000, 50), peer(1_000, 1_000, [4, 50])]
        // The daemon's primary group is the group.
        case .daemon: [peer(990, 50), peer(990, 990)]
        // nobody; a user of this machine; a user in no database; the overflow user of user namespaces.
        case .nobody: [peer(65_534, 65_534), peer(1_000, 1_000), peer(3_999_999_999, 7), peer(.max, .max)]
        }
    }

    private func peer(_ user: UInt32, _ group: UInt32, _ groups: [UInt32] = []) -> VarlinkPeer {
        VarlinkPeer(processIdentifier: 1, user: user, group: group, supplementaryGroups: groups)
    }
}

@Suite(.serialized, .hangLimit) struct RightsTests {
    private let rights = ControlRights(daemonUser: 990, isSystemDaemon: true, changingGroup: 50)

    /// The table of docs/control.md: the rights of each method and caller.
    private func documented() throws -> [String: [Caller: Bool]] {
        let text = try #require(contents(of: repository + "/docs/control.md"))
        let rows = text.split(separator: "\n").map { line in
            line.split(separator: "|").map { $0.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace) }
                .map { String($0.reversed()) }
        }
        let heading = try #require(rows.first { $0.contains(Caller.member.rawValue) })
        var table: [String: [Caller: Bool]] = [:]
        for row in rows where row.count == heading.count && row[0].hasPrefix("`") && row[0].contains(".") {
            for (column, cell) in row.enumerated().dropFirst() {
                let caller = try #require(Caller(rawValue: heading[column]))
                try #require(["yes", "no"].contains(cell))
                table[row[0].filter { $0 != "`" }, default: [:]][caller] = cell == "yes"
            }
        }
        return table
    }

    @Test("the rights of each caller and method match the documentation")
    func matrix() throws {
        let table = try documented()
        #expect(Set(table.keys) == Set(ControlRights.permissions.keys))
        for (method, callers) in table {
            #expect(Set(callers.keys) == Set(Caller.allCases))
            for (caller, isAllowed) in callers {
                for peer in caller.peers {
                    #expect(rights.allow(method, by: peer) == isAllowed, "\(method) by \(peer)")
                }
            }
        }
    }

    @Test("without a group on the machine, root alone changes things")
    func withoutGroup() {
        let rights = ControlRights(daemonUser: 990, isSystemDaemon: true, changingGroup: nil)
        for caller in Caller.allCases {
            for peer in caller.peers { #expect(rights.allow(.change, by: peer) == (caller == .root)) }
        }
    }

    @Test("connections are reserved for callers that may do more than read, so that others cannot block them")
    func reservedConnections() {
        for caller in Caller.allCases {
            for peer in caller.peers { #expect(rights.hasReservedConnections(peer) == (caller != .nobody)) }
        }
    }

    @Test("an unknown method is allowed for no caller")
    func unknownMethod() {
        #expect(!rights.allow("io.freshet.Control.Erase", by: VarlinkPeer(processIdentifier: 1, user: 0, group: 0)))
    }

    @Test("each method of the interfaces has rights and a handler")
    func complete() async throws {
        struct Info: Decodable { var interfaces: [String] }
        struct Description: Decodable { var description: String }
        try await withControlServer(ScriptedService()) { path in
            let client = try VarlinkClient(path: path)
            let interfaces = try client.call("org.varlink.service.GetInfo").decode(as: Info.self).interfaces
            #expect(interfaces == ["io.freshet.Control", "io.systemd.service", "org.varlink.service"])
            var methods: Set<String> = []
            for interface in interfaces where interface != "org.varlink.service" {
                let text = try client.call(
                    "org.varlink.service.GetInterfaceDescription",
                    VarlinkParameters(encoding: ["interface": interface])
                ).decode(as: Description.self).description
                for line in text.split(separator: "\n") where line.hasPrefix("method ") {
                    methods.insert("\(interface).\(line.dropFirst(7).prefix { $0 != "(" })")
                }
            }
            #expect(methods == Set(ControlRights.permissions.keys))
            for method in methods {
                // Each method has its own client, because streams end by closing the connection.
                do {
                    try VarlinkClient(path: path).callMore(method) { _ in false }
                } catch VarlinkClientError.refused(let error) {
                    #expect(error.name == VarlinkErrorReply.Name.invalidParameter, "\(method): \(error)")
                }
            }
        }
    }

    @Test("a method that changes something is refused to read-only callers before its parameters are decoded")
    func refusal() async throws {
        let service = ScriptedService()
        try await withControlServer(service, rights: strangerRights) { path in
            let client = try VarlinkClient(path: path)
            for (method, permission) in ControlRights.permissions where permission != .read {
                #expect(throws: VarlinkClientError.refused(.permissionDenied)) { try client.call(method) }
            }
        }
        #expect(service.asked.isEmpty)
    }
}

@Suite(.serialized, .hangLimit) struct SystemdServiceTests {
    private func call(_ client: VarlinkClient, _ method: String, _ json: String? = nil) throws -> String {
        struct Level: Encodable {
            var text: String
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(["level": Int64(text)])
            }
        }
        let parameters = try json.map { try VarlinkParameters(encoding: Level(text: $0)) } ?? .none
        return String(decoding: try client.call("io.systemd.service." + method, parameters).json, as: UTF8.self)
    }

    @Test("Ping answers, Reload reloads like freshetctl reload, and a refusal carries the diagnostics")
    func pingAndReload() async throws {
        let service = ScriptedService()
        let error = ConfigurationDiagnostic(file: "a.yaml", message: "unknown key")
        try await withControlServer(service) { path in
            let client = try VarlinkClient(path: path)
            #expect(try call(client, "Ping") == "{}")
            #expect(try call(client, "Reload") == "{}")
            service.change { $0.reload = .failure(.configurationRefused([error])) }
            let refusal = VarlinkClientError.refused(ControlError.configurationRefused([error]).reply)
            #expect(throws: refusal) { try call(client, "Reload") }
        }
        #expect(service.asked == ["io.systemd.service.Reload", "io.systemd.service.Reload"])
    }

    @Test(
        "SetLogLevel takes the priorities of syslog, and null for its default",
        arguments: [
            ("0", .critical), ("1", .critical), ("2", .critical), ("3", .error), ("4", .warning), ("5", .notice),
            ("6", .info), ("7", .debug), ("null", .info),
        ] as [(String, LogLevel)])
    func setLogLevel(level: String, expected: LogLevel) async throws {
        let service = ScriptedService()
        service.change { $0.logLevel = .trace }
        try await withControlServer(service) { path in
            let client = try VarlinkClient(path: path)
            #expect(try call(client, "SetLogLevel", level) == "{}")
            let own = try ControlClient(path: path)
            #expect(try own.logLevel() == expected)
        }
    }

    @Test("an invalid or missing level is an invalid parameter and changes nothing", arguments: ["-1", "8", nil])
    func wrongLevel(level: String?) async throws {
        let service = ScriptedService()
        try await withControlServer(service) { path in
            #expect(throws: VarlinkClientError.refused(.invalidParameter("level"))) {
                try call(VarlinkClient(path: path), "SetLogLevel", level)
            }
        }
        #expect(service.asked.isEmpty)
    }
}
