import Testing

@testable import FreshetConfiguration

struct ConfigurationFilesTests {
    private static let all: [String: [String]] = [
        "a": ["/etc/freshet/pipelines/a.yaml"],
        "b": ["/usr/lib/freshet/pipelines/b.yaml"],
        "with-drop-in": [
            "/etc/freshet/pipelines/with-drop-in.yaml", "/etc/freshet/pipelines/with-drop-in.yaml.d/x.yaml",
        ],
        "other-name": ["/etc/freshet/pipelines/a.yaml"],
        "longer": ["a.yaml"],
        "relative": ["pipelines/relative.yaml"],
        "root": ["/root.yaml"],
        "none": [],
        "": ["/etc/freshet/pipelines/.yaml"],
    ]

    @Test func `the files of each pipeline are those that were set`() {
        var files = ConfigurationFiles()
        for (name, paths) in Self.all { files[name] = paths }
        for (name, paths) in Self.all { #expect(files[name] == paths) }
        #expect(files.count == Self.all.count && Set(files.names) == Set(Self.all.keys))
        #expect(files["unknown"] == nil)
    }

    @Test func `a pipeline that gets other files, or none, keeps nothing of those before`() {
        var files = ConfigurationFiles()
        for (name, paths) in Self.all {
            for other in Self.all.values {
                files[name] = paths
                files[name] = other
                #expect(files[name] == other)
            }
            files[name] = nil
            #expect(files[name] == nil && files.isEmpty)
        }
    }

    @Test func `files are equal whatever the order in which they were set`() {
        var (one, other) = (ConfigurationFiles(), ConfigurationFiles())
        for (name, paths) in Self.all { one[name] = paths }
        for (name, paths) in Self.all.sorted(by: { $0.key > $1.key }) { other[name] = paths }
        #expect(one == other)
        other["a"] = ["/elsewhere/a.yaml"]
        #expect(one != other)
    }

    @Test func `pipelines in more directories than are numbered keep their paths`() {
        var files = ConfigurationFiles()
        for number in 0..<200 { files["p"] = ["/\(number)/p.yaml"] }
        #expect(files["p"] == ["/199/p.yaml"])
    }
}
