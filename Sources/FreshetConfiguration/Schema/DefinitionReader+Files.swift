import FreshetPipelines

/// Where a pipeline's copy is, and where that stands in its file.
struct CacheFileLocation {
    /// The names that it takes below `current/`, that of its `cache.file` first.
    var names: [String]
    /// The name of the copy itself.
    var reader: String
    var location: Location

    init(of cache: CacheRules, at location: Location) {
        names = [cache.file] + (cache.files.isEmpty ? [] : [cache.readerFile])
        reader = cache.readerFile
        self.location = location
    }
}

/// The files that a copy is split into.
extension DefinitionReader {
    mutating func cachedFiles(in section: Section, _ format: ContentFormat) -> [CachedFile] {
        guard let entry = section["files"] else { return [] }
        let path = section.path("files")
        let remedy = "write files: {keys.json: .keys, issuer.txt: .issuer}"
        guard case .mapping(let entries) = entry.value.content else {
            if case .refused = entry.value.content { return [] }
            error(
                entry.value.location, path, "'files' has to hold names with jq programs, not \(entry.value.kind)",
                remedy: remedy)
            return []
        }
        if format == .text, let other = section["format"] {
            error(
                other.value.location, section.path("format"), "with 'files' there is no 'format: text'",
                remedy: "leave it out: a program whose output is a string makes a text", related: entry.location)
        }
        if let other = section["key"] {
            error(
                other.value.location, section.path("key"), "with 'files' there is no 'key'",
                remedy:
                    "leave it out: the copy is an object with all files, and no list; a file that is one can have a "
                    + "pipeline of its own, by 'source: {pipeline: …}'", related: entry.location)
        }
        var files: [CachedFile] = []
        for file in entries {
            if case .removed = file.value.content { continue }
            do throws(ValueError) {
                // As the name of a key says the same of any file, quotation marks do not matter.
                _ = try ValueKind<String>.fileName.read(Node.Scalar(text: file.key, isPlain: false))
            } catch {
                self.error(file.location, "\(path).\(file.key)", "\(file.key.quoted) \(error.message)")
                continue
            }
            let program = value(of: file.value, key: file.key, keyPath: "\(path).\(file.key)", .program)
            if let program { files.append(CachedFile(file.key, by: program)) }
        }
        checkAmount(of: files, entry, path, isEmpty: entries.isEmpty, remedy)
        // What order they stand in makes no other copy.
        return files.sorted { $0.name < $1.name }
    }

    private mutating func checkAmount(
        of files: [CachedFile], _ entry: Node.Entry, _ path: String, isEmpty: Bool, _ remedy: String
    ) {
        if isEmpty {
            error(entry.value.location, path, "'files' names no file", remedy: "\(remedy), or leave it out")
        }
        if files.count > CachedFile.perPipeline {
            error(
                entry.location, path, "'files' has more than \(CachedFile.perPipeline) files",
                remedy: "give the others a pipeline of their own")
        }
        if files.program.utf8.count > CachedFile.programBytes {
            error(
                entry.location, path,
                "'files' has more than \(ByteSize.text(UInt64(CachedFile.programBytes))) of programs",
                remedy: "do what they have in common in 'transform'")
        }
    }

    /// Of several files, the copy is one JSON object.
    mutating func checkForm(of check: CheckRules, of cache: CacheRules, in file: Section) {
        guard !cache.files.isEmpty, let form = check.form, form != .json,
            let entry = entry("format", below: "check", in: file)
        else { return }
        error(
            entry.value.location, "check.format", "'\(form)' is not what 'cache.files' makes",
            remedy: "leave it out: checks see one JSON object with a member for each file")
    }
}
