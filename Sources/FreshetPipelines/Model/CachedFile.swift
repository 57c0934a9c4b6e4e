/// One of several files that a pipeline's snapshot is split into.
///
/// The snapshot then is one JSON object that has them all, a member for each by its name. That is what is checked, compared,
/// committed and kept; the cache makes a directory of it.
package struct CachedFile: Hashable, Sendable {
    /// One path component.
    package var name: String
    /// A jq program with one output for the snapshot: a string is the file's content as it is, anything else JSON.
    package var program: String

    /// How many one pipeline has at most.
    package static let perPipeline = 100
    /// How many bytes all programs of a pipeline have at most with their names, since they are run as one: less than what
    /// a helper takes.
    package static let programBytes = 60 << 10
    /// What the name of the file has after that of the directory which holds all files as one.
    package static let stampSuffix = ".stamp"

    package init(_ name: String, by program: String) {
        self.name = name
        self.program = program
    }
}

extension CacheRules {
    /// The name below `current/` of the file that is the copy: of several files that of the stamp beside their directory.
    package var readerFile: String { files.isEmpty ? file : file + CachedFile.stampSuffix }
}

extension [CachedFile] {
    /// One program that makes the object of them all.
    package var program: String {
        // The line's end closes a comment that a program may end with.
        let members = map { "\"\($0.name.jqText)\": [(\($0.program)\n)]" }.joined(separator: ", ")
        return #"""
            {\#(members)} | reduce keys_unsorted[] as $name (.;
            if .[$name] | length == 1 then .[$name] = .[$name][0]
            else error("'\($name)' is to have one output, and has \(.[$name] | length): \#
            [ ] around the program makes a list of them")
            end)
            """#
    }
}

extension String {
    /// Within a string of a jq program.
    fileprivate var jqText: String {
        replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    }
}

extension Transforming {
    /// The files that a snapshot is split into, as one JSON object.
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
                    "cache.files are made of one JSON text, and there \(objects.isEmpty ? "is none" : "are more")"))
        }
        return object + [UInt8(ascii: "\n")]
    }
}
