package import FreshetHelper

/// What a helper reports when it has ended.
///
/// On the wire: the three bytes `FUR` and the version, one byte of ``Status``, one byte of the gaps in the sandbox,
/// then the message.
package struct UnpackReport: Hashable, Sendable {
    package enum Status: UInt8, Sendable {
        /// The whole content was written.
        case done = 0
        /// The input is not acceptable.
        case invalid = 1
        /// The helper lacks something on this machine.
        case unavailable = 2
        /// The helper could not confine itself and did not read the input.
        case notConfined = 3
    }

    /// The most bytes of a message; longer messages are truncated.
    package static let maxMessage = 2_048
    private static let magic: [UInt8] = [0x46, 0x55, 0x52, 1]

    package var status: Status
    /// The parts of the sandbox that the helper lacks, because the kernel does not support them.
    package var gaps: HelperSandbox.Gaps
    /// Empty after success. It may quote names of members.
    package var message: String

    package init(_ status: Status, gaps: HelperSandbox.Gaps = [], message: String = "") {
        self.status = status
        self.gaps = gaps
        self.message = message
    }

    /// The report on the wire.
    package var bytes: [UInt8] {
        Self.magic + [status.rawValue, gaps.rawValue] + message.utf8.prefix(Self.maxMessage)
    }

    /// Nil if the bytes are not one report.
    package init?(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.starts(with: Self.magic), bytes.count >= Self.magic.count + 2,
            bytes.count <= Self.magic.count + 2 + Self.maxMessage,
            let status = Status(rawValue: bytes[Self.magic.count])
        else { return nil }
        self.init(
            status, gaps: HelperSandbox.Gaps(rawValue: bytes[Self.magic.count + 1]),
            message: String(decoding: bytes[(Self.magic.count + 2)...], as: UTF8.self))
    }
}

/// Why an input cannot be unpacked.
struct UnpackError: Error, Hashable {
    var status: UnpackReport.Status
    var message: String

    init(_ message: String, status: UnpackReport.Status = .invalid) {
        self.status = status
        self.message = message
    }
}
