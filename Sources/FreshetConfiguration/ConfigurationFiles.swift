/// The paths of the files of each pipeline, by the name of the pipeline.
///
/// The daemon keeps them for as long as it runs. Most pipelines have one file, `NAME.yaml` in one of few directories,
/// so for such a pipeline only the number of its directory is kept.
package struct ConfigurationFiles: Sendable {
    /// For each pipeline the index of its directory; ``others``: its files are in that table.
    private var places: [String: UInt32] = [:]
    private var directories: [String] = []
    /// The files of the pipelines that do not have exactly one file of their name.
    private var otherFiles: [String: [String]] = [:]

    private static let others = UInt32.max
    /// Each file of a new directory is compared with all of them.
    private static let directoryLimit = 64

    package init() {}

    /// Prepares for so many pipelines.
    mutating func reserveCapacity(_ count: Int) { places.reserveCapacity(count) }

    /// The names of the pipelines.
    package var names: some Collection<String> { places.keys }
    package var isEmpty: Bool { places.isEmpty }
    /// The number of pipelines.
    package var count: Int { places.count }

    /// The files of a pipeline: its own file first, then its drop-ins in the order in which they were merged. Nil: there
    /// is no such pipeline.
    package subscript(name: String) -> [String]? {
        get {
            guard let place = places[name] else { return nil }
            guard place != Self.others else { return otherFiles[name] }
            return [Self.path(directories[Int(place)], name)]
        }
        set {
            if places.updateValue(Self.others, forKey: name) == Self.others { otherFiles[name] = nil }
            guard let files = newValue else {
                places[name] = nil
                return
            }
            if let place = place(of: files, name) { places[name] = place } else { otherFiles[name] = files }
        }
    }

    private static let suffix = ".yaml"

    private static func path(_ directory: String, _ name: String) -> String { directory + "/" + name + suffix }

    /// The index of the directory, if there is one file and it has the name of the pipeline.
    private mutating func place(of files: [String], _ name: String) -> UInt32? {
        guard files.count == 1, let file = files.first else { return nil }
        let length = file.utf8.count - name.utf8.count - Self.suffix.utf8.count - 1
        guard length >= 0 else { return nil }
        let directory = file.utf8.prefix(length)
        let rest = file.utf8.dropFirst(length)
        guard rest.first == UInt8(ascii: "/"), rest.dropFirst().starts(with: name.utf8),
            rest.dropFirst(1 + name.utf8.count).elementsEqual(Self.suffix.utf8)
        else { return nil }
        if let known = directories.firstIndex(where: { $0.utf8.elementsEqual(directory) }) { return UInt32(known) }
        guard directories.count < Self.directoryLimit else { return nil }
        directories.append(String(Substring(directory)))
        return UInt32(directories.count - 1)
    }
}

extension ConfigurationFiles: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, [String])...) {
        for (name, files) in elements { self[name] = files }
    }
}

extension ConfigurationFiles: Equatable {
    package static func == (one: Self, other: Self) -> Bool {
        one.count == other.count && one.names.allSatisfy { one[$0] == other[$0] }
    }
}
