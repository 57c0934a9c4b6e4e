import FreshetHelper
import Testing

@testable import FreshetUnpack

@Suite("The report and the arguments of an unpack helper")
struct ReportTests {
    @Test("a report that is written and read again is the same; a long message is cut")
    func report() {
        for report in [
            UnpackReport(.done, gaps: .landlock), UnpackReport(.invalid, message: "the answer is empty"),
            UnpackReport(.unavailable, message: "ü"), UnpackReport(.notConfined, message: "prctl"),
        ] {
            #expect(UnpackReport(report.bytes) == report)
        }
        let long = UnpackReport(.invalid, message: String(repeating: "x", count: 10_000))
        #expect(UnpackReport(long.bytes)?.message.count == UnpackReport.maxMessage)
    }

    @Test("other bytes are not a report")
    func other() {
        let report = UnpackReport(.done).bytes
        #expect(UnpackReport([]) == nil && UnpackReport(report.dropLast()) == nil)
        #expect(UnpackReport([1] + report) == nil && UnpackReport(Array("FUR".utf8) + [2, 0, 0]) == nil)
        #expect(UnpackReport(Array("FUR".utf8) + [1, 9, 0]) == nil)
        #expect(UnpackReport(report + [UInt8](repeating: 65, count: UnpackReport.maxMessage + 1)) == nil)
    }

    @Test("a request passes through the arguments of a command line")
    func arguments() {
        for request in [
            UnpackRequest(.gzip, maxOutput: 1), UnpackRequest(.tar, member: "a b/*:c", maxOutput: .max),
            UnpackRequest(.zip, member: "-x", maxOutput: 0),
        ] {
            #expect(UnpackRequest(arguments: request.arguments) == request)
        }
        #expect(
            UnpackRequest(arguments: ["rar", "1", ""]) == nil && UnpackRequest(arguments: ["tar", "x", "a"]) == nil)
        #expect(UnpackRequest(arguments: ["gzip"]) == nil)
    }
}
