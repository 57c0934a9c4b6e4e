import ControlTestSupport
import FreshetControl
import TestSupport
import Testing

@testable import FreshetCommands

/// freshetctl with a daemon of another version, or with another program.
@Suite(.serialized, .hangLimit) struct VersionTests {
    private let newer = [
        "GetDaemon": """
        {"daemon":{"version":"9","pid":1,"since":1795228700000000,"network":"fine","networkReachable":true,
        "mood":"good","pipelines":{"total":3,"idle":0,"waiting":0,"loading":0,"loaded":1,"failed":0,"held":0,
        "dreaming":2}}}
        """,
        "List": """
        {"pipelines":[{"name":"jwks","source":"s","state":"dreaming","waitingFor":"godot","freshness":"crisp",
        "lastCauses":[],"needsNetwork":false,"colour":{"deep":[1,{"x":null}]},"lastRun":{"number":4,"started":1,
        "causes":[],"outcome":"forgotten"}}],"more":true}
        """,
        "Summarize": """
        {"summaries":[{"name":"jwks","state":"dreaming","waitingFor":"godot","freshness":"crisp","causes":[],
        "colour":{"deep":[1,{"x":null}]}}],"more":true}
        """,
        "Refresh": """
        {"results":[{"name":"jwks","outcome":"forgotten","failure":"it was another day"}]}
        """,
        "Monitor": """
        {"event":{"at":1795228763000000,"kind":"eclipse","detail":"total","degree":1}}
        """,
        "Signals": """
        {"signals":[{"name":"tide","fact":"high","fired":1,"moon":"full"}],"sea":"quiet"}
        """,
        "Reload": """
        {"summary":{"added":[],"changed":[],"removed":[],"unchanged":1,"pending":[]},
        "diagnostics":[{"severity":"whim","file":"a.yaml","message":"m"}]}
        """,
    ]

    @Test(
        "values and fields that a newer daemon adds are ignored, and known ones are shown",
        arguments: [
            ("status", .success, "Pipelines: 3: 1 loaded"), ("list", .success, "jwks unknown; unknown"),
            ("status jwks", .success, "Last run: #4 unknown"), ("signals", .success, "tide"),
            ("list --json", .success, #""name":"jwks""#),
            ("monitor", .success, "an event that this freshetctl does not know: total"),
            ("refresh --wait jwks", .failure, "jwks: unknown: it was another day"),
            ("reload", .success, "a.yaml: note: m"),
        ] as [(String, CommandStatus, String)])
    func newerDaemon(line: String, status: CommandStatus, shown: String) async throws {
        let transcript = Transcript()
        try await withForeignServer(replies: newer) { path in
            #expect(freshetctl(line, transcript, socket: path) == status)
        }
        let said = transcript.output + transcript.printError
        #expect(said.contains(shown), "\(said)")
    }

    @Test("a method that an older daemon lacks is a failure that names the remedy")
    func olderDaemon() async throws {
        let transcript = Transcript()
        try await withForeignServer(replies: newer) { path in
            #expect(freshetctl("log-level", transcript, socket: path) == .failure)
        }
        #expect(
            transcript.printError
                == "freshetctl: the daemon does not support 'io.freshet.Control.GetLogLevel': it is older than this "
                + "freshetctl; 'systemctl restart freshetd' starts the installed version\n")
    }

    @Test("replies without required fields are a failure, not a crash", arguments: ["list", "signals", "status"])
    func wrongReplies(verb: String) async throws {
        let transcript = Transcript()
        let replies = ["Summarize": #"{"summaries":[{"name":7}]}"#, "Signals": "{}", "GetDaemon": #"{"daemon":null}"#]
        try await withForeignServer(replies: replies) { path in
            #expect(freshetctl(verb, transcript, socket: path) == .failure)
        }
        #expect(transcript.output.isEmpty && transcript.printError.contains("may have different versions"))
    }

    @Test("another program at the socket is reported, with status 69")
    func anotherProgram() async throws {
        let transcript = Transcript()
        try await withForeignServer(interface: "org.example.other", replies: ["Ping": "{}"]) { path in
            #expect(freshetctl("list", transcript, socket: path) == .notRunning)
        }
        #expect(transcript.printError.contains("is not freshetd"))
    }
}
