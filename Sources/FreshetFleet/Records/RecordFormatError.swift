/// Why a text is not a record of a fleet.
package enum RecordFormatError: Error, Hashable, Sendable, CustomStringConvertible {
    case notJSON
    case tooLong
    /// A later version of Freshet made it.
    case newerVersion(UInt64)
    /// The member is missing, or its value is not of the kind that it has to be.
    case member(String)

    package var description: String {
        switch self {
        case .notJSON: "it is not a JSON object"
        case .tooLong: "it has more than \(FleetRecord.longestRecord) bytes"
        case .newerVersion(let version):
            "its format is version \(version), and this Freshet reads version \(FleetRecord.version); update it"
        case .member(let name): "its member '\(name)' is missing or has a wrong value"
        }
    }
}
