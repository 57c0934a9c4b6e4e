import FreshetPipelines

/// The file names of a pipeline's copy, and the location of `cache.file` in the pipeline's file.
struct CacheFileLocation: Sendable {
    /// The names that the copy uses below `current/`, beginning with `cache.file`.
    var names: [String]
    /// The name of the file that readers open.
    var reader: String
    var location: Location

    init(of cache: CacheRules, at location: Location) {
        names = [cache.file] + (cache.files.isEmpty ? [] : [cache.readerFile])
        reader = cache.readerFile
        self.location = location
    }
}

/// The key `cache.files`: the files into which a copy is split.
struct CachedFilesReader {
    let reader: DefinitionReader

    func cachedFiles(in section: Section, _ format: ContentFormat) -> [CachedFile] {
        guard let entry = section["files"] else { return [] }
        let path = section.path("files")
        let remedy = "write files: {keys.json: .keys, issuer.txt: .issuer}"
        guard case .mapping(let entries) = entry.value.content else {
            if case .invalid = entry.value.content { return [] }
            reader.addError(
                entry.value.location, path, "'files' has to contain names with jq programs, not \(entry.value.kind)",
                remedy: remedy)
            return []
        }
        if format == .text, let other = section["format"] {
            reader.addError(
                other.value.location, section.path("format"), "'files' and 'format: text' exclude each other",
                remedy: "leave 'format' out: a program that outputs a string makes a text file",
                related: entry.location)
        }
        if let other = section["key"] {
            reader.addError(
                other.value.location, section.path("key"), "'files' and 'key' exclude each other",
                remedy:
                    "leave 'key' out: the copy is an object with all files, not a list; another pipeline with "
                    + "'source: {pipeline: …}' can have a 'key' for one of the files", related: entry.location)
        }
        var files: [CachedFile] = []
        for file in entries {
            if case .removed = file.value.content { continue }
            do throws(ValueError) {
                // Whether the key is in quotation marks does not matter.
                _ = try ValueKind<String>.fileName.read(Node.Scalar(text: file.key, isPlain: false))
            } catch {
                reader.addError(file.location, "\(path).\(file.key)", "\(file.key.quoted) \(error.message)")
                continue
            }
            let program = reader.value(of: file.value, key: file.key, keyPath: "\(path).\(file.key)", .program)
            if let program { files.append(CachedFile(file.key, by: program)) }
        }
        checkAmount(of: files, entry, path, isEmpty: entries.isEmpty, remedy)
        // Sorted, because the order in the file does not change the copy.
        return files.sorted { $0.name < $1.name }
    }

    private func checkAmount(
        of files: [CachedFile], _ entry: Node.Entry, _ path: String, isEmpty: Bool, _ remedy: String
    ) {
        if isEmpty {
            reader.addError(entry.value.location, path, "'files' is empty", remedy: "\(remedy), or leave it out")
        }
        if files.count > CachedFile.perPipeline {
            reader.addError(
                entry.location, path, "'files' has more than \(CachedFile.perPipeline) files",
                remedy: "move some of them to another pipeline")
        }
        if files.program.utf8.count > CachedFile.programBytes {
            reader.addError(
                entry.location, path,
                "the programs of 'files' are longer than \(ByteSize.text(UInt64(CachedFile.programBytes))) together",
                remedy: "move the common parts to 'transform'")
        }
    }

    /// Checks `check.format`: a copy with several files is one JSON object.
    func checkForm(of check: CheckRules, of cache: CacheRules, in file: Section) {
        guard !cache.files.isEmpty, let form = check.form, form != .json,
            let entry = reader.entry("format", below: "check", in: file)
        else { return }
        reader.addError(
            entry.value.location, "check.format", "'format: \(form)' contradicts 'cache.files'",
            remedy: "leave it out: the checks get one JSON object with a member for each file")
    }
}
