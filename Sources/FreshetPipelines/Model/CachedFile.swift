/// One of several files that a pipeline's snapshot is split into.
///
/// The snapshot then is one JSON object with a member for each file, by its name. The engine checks, compares, commits
/// and keeps this object; the cache makes a directory of it.
package struct CachedFile: Hashable, Sendable {
    /// One path component.
    package var name: String
    /// A jq program with one output for the snapshot: a string is the file's content as it is, anything else JSON.
    package var program: String

    /// The most files of one pipeline.
    package static let perPipeline = 100
    /// The most bytes of all programs of a pipeline with their names. They run as one program, so this is less than the
    /// helper's limit for a program.
    package static let programBytes = 60 << 10
    /// The suffix of the stamp file beside the directory, which holds all files as one object.
    package static let stampSuffix = ".stamp"

    package init(_ name: String, by program: String) {
        self.name = name
        self.program = program
    }
}

extension CacheRules {
    /// The name below `current/` of the file that is the copy; with several files, the stamp beside their directory.
    package var readerFile: String { files.isEmpty ? file : file + CachedFile.stampSuffix }
}

extension [CachedFile] {
    /// One program that makes the object of all files.
    package var program: String {
        // The line break closes a comment at the end of a program.
        let members = map { "\"\($0.name.jqText)\": [(\($0.program)\n)]" }.joined(separator: ", ")
        return #"""
            {\#(members)} | reduce keys_unsorted[] as $name (.;
            if .[$name] | length == 1 then .[$name] = .[$name][0]
            else error("'\($name)' must have one output, and has \(.[$name] | length); \#
            [ ] around the program makes a list of them")
            end)
            """#
    }
}

extension String {
    /// The text, escaped for a string literal of a jq program.
    fileprivate var jqText: String {
        replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    }
}

extension Transforming {
    /// Splits a snapshot into its files, as one JSON object.
    ///
    /// - Parameter format: how the snapshot is written.
    func split(
        _ snapshot: [UInt8], in format: ContentFormat, into files: [CachedFile]
    ) async throws(FetchError) -> [UInt8] {
        let objects: [[UInt8]]
        do throws(FetchError) {
            objects = try await values(of: snapshot, in: format, by: files.program, variables: [])
        } catch {
            throw error.of("cache.files")
        }
        guard objects.count == 1, let object = objects.first else {
            throw .failed(
                RunFailure(
                    .content,
                    "cache.files needs one JSON text, but the program made \(objects.isEmpty ? "nothing" : "several")"))
        }
        return object + [UInt8(ascii: "\n")]
    }
}
