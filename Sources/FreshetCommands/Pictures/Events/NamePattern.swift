import Glibc

/// Names of pipelines as the daemon takes them: patterns as in a shell (fnmatch(3)).
enum NamePattern {
    static func fits(_ name: String, any patterns: [String]) -> Bool {
        patterns.contains { fnmatch($0, name, 0) == 0 }
    }
}
