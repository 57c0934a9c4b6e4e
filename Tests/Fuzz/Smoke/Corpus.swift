import TestSupport
import Testing

/// The seeds of a target: small inputs made by hand, and inputs that once found an error.
enum Corpus {
    static func seeds(of target: FuzzTarget) throws -> [(name: String, bytes: [UInt8])] {
        let folder = "\(directory)/\(target.name)"
        return try TemporaryDirectory.names(folder).map { ($0, try TemporaryDirectory.read("\(folder)/\($0)")) }
    }

    /// `Tests/Fuzz/Corpus`.
    static let directory: String = {
        let parts = "\(#filePath)".split(separator: "/").dropLast(2)
        return "/" + parts.joined(separator: "/") + "/Corpus"
    }()
}

extension FuzzTarget: CustomTestStringConvertible {
    var testDescription: String { name }
}
