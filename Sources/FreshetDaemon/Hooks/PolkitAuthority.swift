import FreshetEventLoop
import FreshetSystemSignals

/// Asks polkit(8) itself whether the running service may manage units.
///
/// polkit answers questions about another process only to root. A check gives up root's rights before it reads the
/// configuration, so a copy of the process asks, which has read nothing (``RetainedRights``).
struct PolkitAuthority: Sendable {
    /// A question to polkit: the verb of systemd, such as `reload`, and the unit.
    struct Question: Hashable, Sendable {
        var verb: String
        var unit: String
    }

    enum Answer: Hashable, Sendable {
        case permitted
        case refused
        /// The reason, as a clause.
        case unknown(String)
    }

    private static let action = "org.freedesktop.systemd1.manage-units"
    private static let name = "org.freedesktop.PolicyKit1"
    private static let systemd = "org.freedesktop.systemd1"
    /// The longest time for all answers, in seconds.
    private static let timeLimit: UInt32 = 20
    /// The longest name of a unit, in bytes (UNIT_NAME_MAX of systemd).
    private static let unitLimit = 255

    /// The longest reason, in characters: the bus may send any text.
    private static let reasonLimit = 300

    private let rights: RetainedRights

    /// Call it as root, before any thread starts. Nil: the kernel refuses another process.
    init?() {
        guard let rights = RetainedRights(timeLimit: Self.timeLimit, answer: { Self.answers(to: $0) }) else {
            return nil
        }
        self.rights = rights
    }

    /// The answers to these questions about the process of the service. Blocks. Call it once.
    func answers(_ questions: [Question], about service: ServiceProcess) -> [Question: Answer] {
        let askable = questions.filter { Self.isUnitName($0.unit) }
        guard let process = service.identity, !askable.isEmpty else { return [:] }
        let request =
            (["\(process.number) \(process.startTime) \(service.user)"]
            + askable.map { "\($0.verb) \($0.unit)" }).joined(separator: "\n")
        let lines = rights.answer(to: request)?.split(separator: "\n").map(String.init) ?? []
        var answers: [Question: Answer] = [:]
        for (index, question) in askable.enumerated() {
            let line = lines.indices.contains(index) ? lines[index] : "polkit does not answer"
            answers[question] = line == "yes" ? .permitted : line == "no" ? .refused : .unknown(line)
        }
        return answers
    }

    /// A name with the characters of unit names (systemd.unit(5)).
    static func isUnitName(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= unitLimit
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: ":-_.\\@".utf8.contains(byte)
                }
            }
    }

    // MARK: In the copy of the process

    /// A line for each question: `yes`, `no`, or why there is no answer.
    ///
    /// - Parameter request: a line with the number, the start time and the user of a process, then a line with a verb
    ///   and a unit for each question.
    private static func answers(to request: String) -> String {
        var lines = request.split(separator: "\n").map { $0.split(separator: " ") }[...]
        guard let subject = lines.popFirst(), subject.count == 3, let number = UInt32(subject[0]),
            let startTime = UInt64(subject[1]), let user = Int32(subject[2]), lines.allSatisfy({ $0.count == 2 })
        else { return "" }
        let process = BusValue.structure([
            .string("unix-process"),
            .array([
                .entry(key: .string("pid"), value: .variant(.uint32(number))),
                .entry(key: .string("start-time"), value: .variant(.uint64(startTime))),
                .entry(key: .string("uid"), value: .variant(.int32(user))),
            ]),
        ])
        do throws(BusError) {
            let bus = try BlockingBus()
            var answers: [String] = []
            for line in lines {
                let unit = ownName(of: String(line[1]), bus)
                answers.append(try isPermitted(String(line[0]), unit, to: process, bus) ? "yes" : "no")
            }
            return answers.joined(separator: "\n")
        } catch {
            let reason = String("polkit does not answer on the system bus: \(error)".prefix(reasonLimit))
                .split(whereSeparator: \.isNewline).joined(separator: " ")
            return lines.map { _ in reason }.joined(separator: "\n")
        }
    }

    private static func isPermitted(
        _ verb: String, _ unit: String, to process: BusValue, _ bus: BlockingBus
    ) throws(BusError) -> Bool {
        let details = BusValue.array([
            .entry(key: .string("unit"), value: .string(unit)), .entry(key: .string("verb"), value: .string(verb)),
        ])
        // 0: nobody is asked for a password. The last argument would name the call, to cancel it.
        let reply = try bus.call(
            "CheckAuthorization", of: "\(name).Authority", at: "/org/freedesktop/PolicyKit1/Authority", on: name,
            [process, .string(action), details, .uint32(0), .string("")])
        return try permission(in: reply)
    }

    /// The permission in an answer of polkit. An answer of another type is an error.
    static func permission(in reply: [BusValue]) throws(BusError) -> Bool {
        guard case .structure(let result)? = reply.first, case .boolean(let isPermitted)? = result.first else {
            throw .unreadable
        }
        return isPermitted
    }

    /// The unit's own name, with which the service manager asks polkit, also for an alias.
    private static func ownName(of unit: String, _ bus: BlockingBus) -> String {
        let loaded = try? bus.call(
            "LoadUnit", of: "\(systemd).Manager", at: "/org/freedesktop/systemd1", on: systemd, [.string(unit)])
        guard case .objectPath(let path)? = loaded?.first else { return unit }
        let name = try? bus.call(
            "Get", of: "org.freedesktop.DBus.Properties", at: path, on: systemd,
            [.string("\(systemd).Unit"), .string("Id")])
        guard case .variant(.string(let text))? = name?.first else { return unit }
        return text
    }
}

/// The units that a command manages, if the command is a plain call of systemctl(1).
struct UnitCommand: Hashable, Sendable {
    var verb: String
    var units: [String]

    /// Commands of systemctl, which have the verb of polkit's question.
    private static let verbs = [
        "reload": "reload", "restart": "restart", "start": "start", "stop": "stop", "try-restart": "try-restart",
        "reload-or-restart": "reload-or-restart", "try-reload-or-restart": "reload-or-try-restart",
    ]
    /// Options that do not change which units are meant, or by which service manager.
    private static let options: Set = ["--no-block", "--quiet", "-q", "--no-ask-password", "--system", "--no-pager"]
    private static let suffixes = [
        ".service", ".socket", ".target", ".timer", ".path", ".mount", ".automount", ".swap", ".slice", ".scope",
        ".device",
    ]

    /// Nil for any other command, such as a shell.
    init?(_ command: [String]) {
        guard let program = command.first, ["/bin/systemctl", "/usr/bin/systemctl"].contains(program) else {
            return nil
        }
        var rest = command.dropFirst().filter { !Self.options.contains($0) }[...]
        guard let verb = rest.popFirst().flatMap({ Self.verbs[$0] }), !rest.isEmpty,
            rest.allSatisfy({ PolkitAuthority.isUnitName($0) && !$0.hasPrefix("-") })
        else { return nil }
        self.verb = verb
        units = rest.map { name in Self.suffixes.contains { name.hasSuffix($0) } ? name : "\(name).service" }
    }
}
