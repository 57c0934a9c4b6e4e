import FreshetEventLoop
import FreshetHelper
import FreshetJQ
import FreshetPipelines
import Glibc
import TestSupport
import Testing

@testable import FreshetEmitters

/// With real processes: a test program sets up the helper's sandbox with the helper's own function and makes one
/// attempt.
@Suite("The sandbox of jq helpers", .hangLimit)
struct HelperSandboxTests {
    let running: RunningLoop

    init() throws { running = try RunningLoop() }

    /// How the test program ends: with 0 if the attempt succeeded, with the error number, or by a signal.
    private func result(_ attempt: String, within confinement: String) async throws -> ChildProcess.Exit {
        let null = try OwnedDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC), of: "open", subject: "/dev/null")
        let witness = try ChildProcess(
            running.loop,
            ChildProcess.Command(
                path: "\(try productsDirectory())/SandboxWitness", arguments: [confinement, attempt]),
            input: null.rawValue, output: null.rawValue, error: null.rawValue)
        return await witness.wait()
    }

    @Test("reads, writes, memory and clocks work in the sandbox")
    func work() async throws {
        for confinement in ["nothing", "landlock", "all"] {
            #expect(try await result("work", within: confinement) == .exited(status: 0))
        }
    }

    @Test(
        "an attempt that succeeds without a sandbox ends the process in the sandbox",
        arguments: [
            "socket", "socketpair", "connect", "fork", "clone3", "execve", "ptrace", "readmemory", "kill", "tgkill",
            "mapcode", "protectcode", "dumpable", "unlimited", "otherlimit", "memfd", "action",
        ])
    func killed(_ attempt: String) async throws {
        #expect(try await result(attempt, within: "nothing") == .exited(status: 0))
        #expect(try await result(attempt, within: "all") == .signalled(SIGSYS))
    }

    // A machine or a container may forbid these calls even without the sandbox.
    @Test(
        "an attempt that some machines always forbid ends the process in the sandbox", arguments: ["unshare", "ring"])
    func killedAnyway(_ attempt: String) async throws {
        #expect(try await result(attempt, within: "all") == .signalled(SIGSYS))
    }

    @Test("opening or creating a file fails with an error and does not end the process", arguments: ["open", "make"])
    func files(_ attempt: String) async throws {
        #expect(try await result(attempt, within: "nothing") == .exited(status: 0))
        #expect(try await result(attempt, within: "all") == .exited(status: EPERM))
    }

    @Test(
        "Landlock alone denies files and programs", .enabled(if: HelperSandbox.landlockVersion >= 1),
        arguments: ["open", "make", "execve"])
    func landlockFiles(_ attempt: String) async throws {
        #expect(try await result(attempt, within: "landlock") == .exited(status: EACCES))
    }

    @Test("Landlock alone denies connections", .enabled(if: HelperSandbox.landlockVersion >= 4))
    func landlockNetwork() async throws {
        #expect(try await result("connect", within: "landlock") == .exited(status: EACCES))
    }

    @Test(
        "Landlock alone denies access to other processes", .enabled(if: HelperSandbox.landlockVersion >= 6),
        arguments: ["kill", "tgkill", "ptrace"])
    func landlockProcesses(_ attempt: String) async throws {
        #expect(try await result(attempt, within: "landlock") == .exited(status: EPERM))
    }

    @Test(
        "each jq function that makes system calls works in a helper",
        arguments: [
            ("now | type", #""number""#), (#""2026-07-15T12:00:00Z" | fromdate"#, "1784116800"),
            (#""10:20" | strptime("%H:%M") | .[3:5]"#, "[10,20]"), ("0 | localtime | mktime", "0"),
            (#"0 | strflocaltime("%Y %Z")"#, #""1970 UTC""#), (#"0 | gmtime | strftime("%A")"#, #""Thursday""#),
            ("env.TZ, $ENV.TZ", "\"UTC0\"\n\"UTC0\""), ("input_filename", "null"), ("[limit(2; repeat(1))]", "[1,1]"),
            ("1 | debug", "1"), ("1 | stderr", "1"), (#""abc" | test("B"; "i")"#, "true"),
            ("[range(100000)] | map(tostring) | length", "100000"), (#"try error("x") catch ."#, #""x""#),
        ])
    func features(_ program: String, _ output: String) async throws {
        let transformer = try JQTransformer.withRealHelper(running)
        let result = try await transformer.transform(Array("null".utf8), by: program)
        #expect(String(decoding: result, as: UTF8.self) == output + "\n")
    }

    @Test("halt_error ends the program and not the helper")
    func haltError() async throws {
        let transformer = try JQTransformer.withRealHelper(running)
        let failure = try await failureOf { () async throws(FetchError) in
            try await transformer.transform(Array("1".utf8), by: #""enough" | halt_error"#)
        }
        #expect(failure.message.contains("enough"))
        #expect(await transformer.idleHelpers == 1)
    }

    @Test("the daemon's helper runs in the sandbox")
    func confined() async throws {
        let transformer = try JQTransformer.withRealHelper(running)
        _ = try await transformer.transform(Array("1".utf8), by: ".")
        let helper = try #require(await transformer.warmIdentifiers.first)
        let status = try String(decoding: bytes(of: "/proc/\(helper)/status"), as: UTF8.self)
        #expect(status.contains("NoNewPrivs:\t1\n"))
        #expect(status.contains("Seccomp:\t2\n"))
    }

    @Test("a helper that cannot set up its sandbox runs no program, and the failure names the system call")
    func notConfined() async throws {
        var pair: [Int32] = [-1, -1]
        try #require(Glibc.socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        let request = HelperRequest(.outputs, program: ".", input: [], maxOutput: 100)
        _ = request.head.withUnsafeBytes { write(pair[0], $0.baseAddress, $0.count) }
        shutdown(pair[0], Int32(SHUT_WR))
        JQHelper.run(
            input: pair[1], output: pair[1],
            confinement: .failure(HelperSandbox.Failure("landlock_restrict_self", errno: E2BIG)))
        close(pair[1])
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = read(pair[0], &buffer, buffer.count)
        close(pair[0])
        var decoder = HelperReply.Decoder(maxOutput: 100)
        let reply = try #require(try decoder.take(buffer.prefix(count)))
        let failure = try #require(TransformFailure.of(reply, to: request))
        #expect(failure.kind == .local)
        #expect(failure.message.contains("landlock_restrict_self: Argument list too long"))
    }

    private func bytes(of path: String) throws -> [UInt8] {
        let file = try OwnedDescriptor(open(path, O_RDONLY | O_CLOEXEC), of: "open", subject: path)
        var buffer = [UInt8](repeating: 0, count: 16_384)
        let count = read(file.rawValue, &buffer, buffer.count)
        return Array(buffer.prefix(max(0, count)))
    }
}
