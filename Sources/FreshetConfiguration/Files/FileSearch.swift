/// Finds the files of a configuration: the file of each name with the highest priority, and its drop-ins.
struct FileSearch {
    /// How many names a directory may have; a larger directory does not contain a configuration.
    static let maximumNames = 100_000
    private static let suffix = ".yaml"
    private static let dropInSuffix = ".yaml.d"

    /// A file and its drop-ins.
    struct Group {
        /// The file's name without its suffix.
        var name: String
        /// The path of the file with the highest priority; nil if there are only drop-ins, which only the daemon
        /// allows.
        var file: String?
        /// The paths of the drop-ins, in the order in which they are merged.
        var dropIns: [String]
        var kind = Kind.pipeline

        var isDaemon: Bool { kind == .daemon }
    }

    /// The kind of thing that a file defines.
    enum Kind: Hashable {
        case pipeline, daemon
        /// A hook of several pipelines.
        case hook

        /// The directory of these files, below a directory of the search path.
        fileprivate var directory: String { self == .hook ? FileSearch.hookDirectory : "pipelines" }
        fileprivate var noun: String { self == .hook ? "hook" : "pipeline" }
    }

    /// The directory of hooks of several pipelines.
    static let hookDirectory = "hooks"

    let searchPath: SearchPath
    let fileSystem: any ConfigurationFileSystem
    private(set) var errors: [Diagnostic] = []

    /// All pipelines, by name.
    mutating func findPipelines() -> [Group] { find(.pipeline) }

    /// All hooks of several pipelines, by name.
    mutating func findHooks() -> [Group] { find(.hook) }

    private mutating func find(_ kind: Kind) -> [Group] {
        var files: [String: String] = [:]
        var dropInDirectories: [String: [String]] = [:]
        for top in searchPath.directories {
            let directory = SearchPath.path(top, kind.directory)
            let names = names(in: directory)
            files.reserveCapacity(files.count + names.count)
            for name in names {
                let path = SearchPath.path(directory, name)
                if let pipeline = Self.name(name, without: Self.suffix) {
                    if files[pipeline] == nil { files[pipeline] = path }
                } else if let pipeline = Self.name(name, without: Self.dropInSuffix) {
                    dropInDirectories[pipeline, default: []].append(path)
                } else {
                    warnOfMisnamed(name, path)
                }
            }
        }
        for (pipeline, directories) in dropInDirectories.sorted(by: { $0.key < $1.key }) where files[pipeline] == nil {
            for directory in directories {
                errors.append(
                    Diagnostic(
                        file: directory, severity: .warning,
                        message:
                            "this directory has drop-ins for \(kind.noun) \(pipeline.quoted), which does not exist",
                        remedy: "remove the directory, or add \(pipeline).yaml next to it"))
            }
        }
        return files.sorted { $0.key < $1.key }.map { name, file in
            Group(name: name, file: file, dropIns: dropIns(in: dropInDirectories[name] ?? []), kind: kind)
        }
    }

    /// The daemon's own files.
    mutating func findDaemon() -> Group {
        var file: String?
        for directory in searchPath.directories {
            let names = names(in: directory, isTop: true)
            if file == nil, names.contains("freshet.yaml") { file = SearchPath.path(directory, "freshet.yaml") }
            for name in names where name == "freshet.yml" {
                warnOfMisnamed(name, SearchPath.path(directory, name))
            }
            // A pipeline's drop-ins are in NAME.yaml.d, so this name is a likely mistake.
            if names.contains("freshet.yaml.d") {
                errors.append(
                    Diagnostic(
                        file: SearchPath.path(directory, "freshet.yaml.d"), severity: .warning,
                        message: "this directory is not read: drop-ins of freshet.yaml belong in freshet.d",
                        remedy: "rename it to freshet.d"))
            }
        }
        let directories = searchPath.directories.map { SearchPath.path($0, "freshet.d") }
        return Group(name: "freshet", file: file, dropIns: dropIns(in: directories), kind: .daemon)
    }

    /// The drop-ins of directories, sorted by file name. If several directories have a drop-in of one name, the first
    /// directory, which has the highest priority, wins.
    private mutating func dropIns(in directories: [String]) -> [String] {
        var paths: [String: String] = [:]
        for directory in directories {
            for name in names(in: directory) {
                let path = SearchPath.path(directory, name)
                if Self.name(name, without: Self.suffix) == nil {
                    warnOfMisnamed(name, path)
                } else if paths[name] == nil {
                    paths[name] = path
                }
            }
        }
        return paths.sorted { $0.key < $1.key }.map(\.value)
    }

    private mutating func names(in directory: String, isTop: Bool = false) -> [String] {
        do throws(FileError) {
            guard let names = try fileSystem.names(inDirectory: directory) else {
                if isTop, searchPath.mustExist {
                    errors.append(
                        Diagnostic(file: directory, message: "there is no such directory", remedy: "check --config-dir")
                    )
                }
                return []
            }
            guard names.count <= Self.maximumNames else {
                errors.append(
                    Diagnostic(file: directory, message: "the directory has more than \(Self.maximumNames) files"))
                return []
            }
            return names
        } catch {
            errors.append(Diagnostic(file: directory, message: error.message, remedy: error.remedy))
            return []
        }
    }

    private static func name(_ name: String, without suffix: String) -> String? {
        guard name.hasSuffix(suffix), !name.hasPrefix("."), name.utf8.count > suffix.utf8.count else { return nil }
        return String(Substring(name.utf8.dropLast(suffix.utf8.count)))
    }

    /// Warns of a file that ends in `.yml`, which is a mistake. Other names, such as the copies that editors and
    /// package managers leave, are skipped without a warning.
    private mutating func warnOfMisnamed(_ name: String, _ path: String) {
        guard name.hasSuffix(".yml"), !name.hasPrefix(".") else { return }
        errors.append(
            Diagnostic(
                file: path, severity: .warning, message: "the file is not read because its name ends in .yml",
                remedy: "rename it so that it ends in .yaml"))
    }
}

/// The rules for the name of a pipeline, and of a hook of several pipelines.
enum PipelineName {
    /// In bytes: a name is part of paths, unit names and log fields.
    static let maximumLength = 64

    /// The error of a name; nil if the name is valid.
    static func error(_ name: String, of kind: String = "pipeline") -> ValueError? {
        let isWellFormed = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        guard isWellFormed, !name.isEmpty else {
            return ValueError(
                "\(name.quoted) is not a valid \(kind) name",
                remedy: "use letters, digits, '-', '_' and '.' in the file's name")
        }
        guard !name.hasPrefix("-"), !name.hasPrefix(".") else {
            return ValueError(
                "\(name.quoted) is not a valid \(kind) name",
                remedy: "begin the file's name with a letter, a digit or '_'")
        }
        guard name.utf8.count <= maximumLength else {
            return ValueError("the \(kind) name is longer than \(maximumLength) bytes", remedy: "rename the file")
        }
        return nil
    }
}
