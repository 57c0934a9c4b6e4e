import ConfigurationTestSupport
import FreshetPipelines

@testable import FreshetConfiguration

/// A configuration of texts below `/etc/freshet`; paths that begin with `/` are not changed.
func load(_ texts: [String: String], directories: [String] = ["/etc/freshet"]) -> Configuration {
    var absolute: [String: String] = [:]
    for (path, text) in texts { absolute[path.hasPrefix("/") ? path : "/etc/freshet/\(path)"] = text }
    return ConfigurationLoader(
        searchPath: SearchPath(directories: directories), fileSystem: InMemoryFileSystem(texts: absolute)
    ).load()
}

/// A configuration of one pipeline, `jwks`, from its file's text.
func load(pipeline text: String) -> Configuration {
    load(["pipelines/jwks.yaml": text])
}

/// The smallest pipeline, with further lines.
func pipeline(_ lines: String..., source: String = "{url: https://id.example.com/jwks}") -> String {
    (["source: \(source)", "cache: {file: jwks.json}"] + lines).joined(separator: "\n") + "\n"
}

/// The errors and warnings of a pipeline's file, as text without the source line and the directories.
func errors(_ text: String) -> [String] {
    texts(load(pipeline: text).diagnostics)
}

func texts(_ diagnostics: [Diagnostic]) -> [String] {
    diagnostics.map { diagnostic in
        var diagnostic = diagnostic
        diagnostic.excerpt = nil
        return diagnostic.text(relativeTo: "/etc/freshet/pipelines")
    }
}

extension Configuration {
    /// The policy of the only pipeline.
    var policy: RefreshPolicy? { pipelines.first?.refresh }
}
