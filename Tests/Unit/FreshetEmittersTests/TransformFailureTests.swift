import FreshetEventLoop
import FreshetHelper
import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("Failures of transforms: bounded in cost and length")
struct TransformFailureTests {
    private let request = HelperRequest(.outputs, program: ".", input: [], maxOutput: 64 << 20)

    private func cost(of work: () -> Void) -> Duration {
        let began = ProcessorTime.used
        work()
        return ProcessorTime.used - began
    }

    @Test("a large successful reply is not scanned for a failure")
    func success() {
        let reply = HelperReply(.done, bytes: [UInt8](repeating: 0x61, count: 4 << 20))
        let escaping = cost { #expect(Text.escaped(reply.bytes.prefix(64 << 10)).utf8.count == 64 << 10) }
        let looking = cost { #expect(TransformFailure.of(reply, to: request) == nil) }
        #expect(looking < escaping)
    }

    @Test("a failure contains a bounded part of a long message from a helper")
    func failure() throws {
        for status in [HelperReply.Status.failed, .invalidProgram, .invalidInput] {
            let reply = HelperReply(status, bytes: [UInt8](repeating: 0x07, count: 4 << 20))
            let failure = try #require(TransformFailure.of(reply, to: request))
            #expect(failure.message.utf8.count < HelperReply.maxMessage * "\\u{7}".utf8.count + 100)
            #expect(failure.message.contains("\\u{7}"))
        }
    }
}
