import FreshetConfiguration
import FreshetSystemSignals
import Glibc
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("The right to reload units")
struct PolkitTests {
    /// Rules of Debian 12: of polkit itself, of PackageKit and of systemd-networkd.
    private static let distribution = [
        "polkit.addAdminRule(function(action, subject) {\n    return [\"unix-group:sudo\"];\n});\n",
        """
        polkit.addRule(function(action, subject) {
            if ((action.id == "org.freedesktop.packagekit.upgrade-system" ||
                 action.id == "org.freedesktop.packagekit.trigger-offline-update") &&
                subject.active == true && subject.local == true && subject.isInGroup("sudo")) {
                    return polkit.Result.YES;
            }
        });
        """,
        """
        polkit.addRule(function(action, subject) {
            if ((action.id == "org.freedesktop.hostname1.set-hostname" ||
                 action.id == "org.freedesktop.timedate1.set-timezone") &&
                subject.user == "systemd-network") {
                return polkit.Result.YES;
            }
        });
        """,
    ]

    private func permission(_ texts: [String], _ unit: String = "nginx.service") -> PolkitRules.Permission {
        PolkitRules(texts: Self.distribution + texts).permission(toReload: unit, user: "freshet")
    }

    @Test("a name of a unit or a user cannot leave its string in the rule")
    func hostileNames() {
        #expect(Polkit.literal("nginx.service") == "\"nginx.service\"")
        #expect(Polkit.literal("a\\x2db@c:d_e.service") == "\"a\\\\x2db@c:d_e.service\"")
        #expect(Polkit.literal("\"];polkit") == "\"\\u0022\\u005d\\u003bpolkit\"")
        #expect(Polkit.literal("a\nb\u{2028}ü\u{1F980}") == "\"a\\u000ab\\u2028\\u00fc\\ud83e\\udd80\"")
        let rule = Polkit.rule(for: ["a\"b.service", "c.service"], user: "x\\\"")
        #expect(rule.contains("        \"a\\u0022b.service\",\n        \"c.service\"\n"))
        #expect(rule.contains("subject.user == \"x\\\\\\u0022\" &&"))
    }

    @Test("an answer of polkit that has another type permits nothing")
    func wrongTypes() throws {
        let details = BusValue.array([.entry(key: .string("a"), value: .string("b"))])
        for isPermitted in [true, false] {
            let answer = BusValue.structure([.boolean(isPermitted), .boolean(true), details])
            #expect(try PolkitAuthority.permission(in: [answer]) == isPermitted)
        }
        let wrong: [[BusValue]] = [
            [], [.boolean(true)], [.structure([])], [.structure([.uint32(1), .boolean(true), details])],
            [.structure([.string("true")])], [.structure([.variant(.boolean(true))])], [.array([.boolean(true)])],
            [.string("yes"), .structure([.boolean(true)])], [.structure([.structure([.boolean(true)])])],
        ]
        for reply in wrong {
            #expect(throws: BusError.unreadable) { try PolkitAuthority.permission(in: reply) }
        }
    }

    @Test("the rules of a distribution permit no reload, and the written rule permits exactly its units")
    func written() {
        #expect(permission([]) == .missing)
        let rule = Polkit.rule(for: ["nginx.service", "a\\x2db.service"], user: "freshet")
        #expect(permission([rule]) == .named)
        #expect(permission([rule], "a\\x2db.service") == .named)
        // A hook that was added later.
        #expect(permission([rule], "caddy.service") == .missing)
        #expect(permission([rule], "nginx.service.path") == .missing)
    }

    @Test(
        "a rule that may permit a reload in another way is not called missing",
        arguments: [
            "polkit.addRule(function(a, s) { if (s.user == \"freshet\") return polkit.Result.YES; });",
            "polkit.addRule(function(action, subject) { if (action.id.indexOf(\"org.freedesktop.\") == 0) return \"yes\"; });",
            "polkit.addRule(function(action) { if (/systemd1/.test(action.id)) { return polkit.Result.YES; } });",
            """
            polkit.addRule(function(action, subject) {
                if (action.id == "org.freedesktop.systemd1.manage-units" && subject.isInGroup("ops"))
                    return polkit.Result.YES;
            });
            """,
            """
            polkit.addRule(function(action, subject) {
                if (action.id == "org.freedesktop.systemd1.manage-units" && action.lookup("unit").startsWith("ngi"))
                    return polkit.Result.YES;
            });
            """,
            """
            polkit.addRule(function(action, subject) {
                if (action.id == "org.freedesktop.systemd1.manage-units" && action.lookup("unit") != "a.service")
                    return polkit.Result.YES;
            });
            """,
        ])
    func otherRules(_ text: String) {
        guard case .unknown = permission([text]) else {
            Issue.record("\(permission([text])) for \(text)")
            return
        }
    }

    @Test("rules that this process may not read, or that do not exist, are an obstacle")
    func obstacles() throws {
        let home = try Home()
        let directory = home.path + "/rules.d"
        let none = PolkitRules(reading: [directory], older: [])
        #expect(
            none.permission(toReload: "a.service", user: "freshet") == .unknown("there is no polkit on this machine"))
        for name in ["rules.d", "older", "older/10-vendor.d"] {
            try #require(mkdir(home.path + "/" + name, 0o755) == 0)
        }
        try home.write(Polkit.rule(for: ["a.service"], user: "freshet"), to: "rules.d/50-freshet.rules")
        try home.write("anything", to: "rules.d/README")
        let read = PolkitRules(reading: [directory, home.path + "/none"], older: [])
        #expect(read.texts.count == 1 && read.obstacle == nil)
        #expect(read.permission(toReload: "a.service", user: "freshet") == .named)
        // A FIFO, on which open(2) would wait, and a file that is too long.
        #expect(mkfifo(directory + "/60-fifo.rules", 0o600) == 0)
        #expect(PolkitRules(reading: [directory], older: []).obstacle == "\(directory)/60-fifo.rules cannot be read")
        #expect(unlink(directory + "/60-fifo.rules") == 0)
        try home.write(String(repeating: " ", count: 300_000), to: "rules.d/70-long.rules")
        #expect(PolkitRules(reading: [directory], older: []).obstacle != nil)
        #expect(unlink(directory + "/70-long.rules") == 0)
        // Files of the older format.
        let older = "older/10-vendor.d/a.pkla"
        try home.write("[A]\nIdentity=unix-user:x\nAction=org.freedesktop.hostname1.*\n", to: older)
        #expect(PolkitRules(reading: [directory], older: [home.path + "/older"]).obstacle != nil)
        try home.write("[A]\nIdentity=unix-user:*\nAction=org.freedesktop.hostname1.set-hostname\n", to: older)
        #expect(PolkitRules(reading: [directory], older: [home.path + "/older"]).obstacle == nil)
    }

    @Test("a process is known by its number and its start time, whatever its name contains")
    func identity() {
        let fields = (4...21).map(String.init).joined(separator: " ")
        let identity = ServiceProcess.Identity(7, stat: "7 (a) S (b)) S \(fields) 4711 23 24\n")
        #expect(identity?.number == 7 && identity?.startTime == 4_711)
        for stat in ["", "7 (a) S 4", "7 (a", "7 (a) S \(fields) x 23"] {
            #expect(ServiceProcess.Identity(7, stat: stat) == nil)
        }
    }

    @Test(
        "a command is about units only if it is a plain call of systemctl",
        arguments: [
            (["/usr/bin/systemctl", "reload", "nginx.service"], "reload", ["nginx.service"]),
            (
                ["/bin/systemctl", "--no-block", "restart", "nginx", "a.socket"], "restart",
                ["nginx.service", "a.socket"]
            ),
            (["/usr/bin/systemctl", "try-reload-or-restart", "a@b"], "reload-or-try-restart", ["a@b.service"]),
            (["/usr/bin/systemctl", "--user", "reload", "a"], nil, []), (["/usr/bin/systemctl", "reload"], nil, []),
            (["/usr/bin/systemctl", "daemon-reload"], nil, []), (["/usr/bin/systemctl", "reload", "a*"], nil, []),
            (["/bin/sh", "-c", "systemctl reload a"], nil, []), (["/usr/bin/systemctl", "reload", "-x"], nil, []),
            (["/srv/systemctl", "reload", "a"], nil, []), ([], nil, []),
        ] as [([String], String?, [String])])
    func commands(_ command: [String], verb: String?, units: [String]) {
        let found = UnitCommand(command)
        #expect(found?.verb == verb && found?.units ?? [] == units)
    }
}
