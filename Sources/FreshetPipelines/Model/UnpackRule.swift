/// How the answer of a source is unpacked to one file.
package enum UnpackRule: Hashable, Sendable, CustomStringConvertible {
    /// The answer is one compressed file.
    case compressed(Compression)
    /// The answer is an archive, which has the file at this path; each `*` stands for any part of one path component.
    case member(of: Archive, path: String)

    package enum Compression: String, CaseIterable, Hashable, Sendable {
        case gzip, zstd, xz, bzip2
    }

    package enum Archive: String, CaseIterable, Hashable, Sendable {
        /// Also compressed with any ``Compression``.
        case tar
        case zip
    }

    /// The longest path of a member, in bytes.
    package static let maximumPathBytes = 1_024

    /// The rule as in the configuration.
    package var description: String {
        switch self {
        case .compressed(let compression): compression.rawValue
        case .member(let archive, let path): "\(archive.rawValue):\(path)"
        }
    }

    /// What becomes of a content coding that was not requested. Servers often label a file `.gz` with its own
    /// compression (`Content-Encoding: gzip`): the label then says how the file is to be unpacked.
    var coding: ContentCoding {
        switch self {
        case .compressed(.gzip), .member(of: .tar, _): .kept
        case .compressed, .member(of: .zip, _): .decoded
        }
    }
}

extension UnpackRule? {
    /// The content coding of a request for an answer that is unpacked by this rule.
    var coding: ContentCoding { self?.coding ?? .requested }
}
