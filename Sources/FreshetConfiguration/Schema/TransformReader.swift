import FreshetPipelines

/// The key `transform`: a jq program, or a mapping with a template.
struct TransformReader {
    let reader: DefinitionReader

    /// The usual suffix of templates.
    static let suffix = ".mustache"

    /// The jq program and the template, whose text is not read yet.
    func transform(in file: Section) -> (jq: String?, template: TemplateDefinition?) {
        guard let entry = file["transform"], case .mapping = entry.value.content else {
            return (reader.value("transform", in: file, .program), nil)
        }
        guard let section = reader.section(.transform, "transform", in: file) else { return (nil, nil) }
        let jq = reader.value("jq", in: section, .program)
        let escape: TemplateDefinition.Escape? = reader.value("escape", in: section, .choice())
        guard let named = section["template"] else {
            if let other = section["escape"] {
                reader.addError(
                    other.location, section.path("escape"), "'escape' needs 'template'", remedy: "leave it out")
            } else if section["jq"] == nil {
                reader.missing(
                    section.location, "transform", "'transform' has neither 'jq' nor 'template'",
                    remedy: "add a program or a template, or leave 'transform' out")
            }
            return (jq, nil)
        }
        if section["escape"] == nil {
            reader.missing(
                named.location, section.path("escape"), "'template' needs 'escape': how {{name}} is written",
                remedy: "add escape: json, shell, nginx or html, for the program that reads the copy; or none")
        }
        guard let path = reader.value("template", in: section, .templatePath) else { return (jq, nil) }
        let whole = path.hasPrefix("/") ? path : Self.directory(of: named.value.location.file) + path
        reader.template = (whole, named.value.location)
        return (jq, TemplateDefinition("", in: whole, escape: escape ?? .none))
    }

    /// The directory of a configuration file, with the slash at its end.
    private static func directory(of file: String) -> String {
        file.lastIndex(of: "/").map { String(file[...$0]) } ?? ""
    }
}

extension ConfigurationLoader {
    /// The text of a template; nil, with an error at the place that names it, if it cannot be read. Blocks.
    func readTemplate(_ file: String, _ reader: DefinitionReader, at place: Location) -> String? {
        func reject(_ message: String, _ remedy: String?) -> String? {
            reader.addError(place, "transform.template", "\(message): \(file)", remedy: remedy)
            return nil
        }
        let content: FileContent
        do throws(FileError) {
            content = try fileSystem.content(ofFile: file, limit: TemplateDefinition.maxBytes)
        } catch {
            return reject(error.message, error.remedy)
        }
        guard case .bytes(let bytes) = content else {
            return reject(
                "the template does not exist", "a path without '/' at its beginning is beside the file that names it")
        }
        guard let text = String(validating: SourceText(file: file, bytes: bytes).bytes, as: UTF8.self) else {
            return reject("the template is not UTF-8", "save it as UTF-8")
        }
        guard !text.isEmpty else { return reject("the template is empty", "write the text of the copy into it") }
        return text
    }

    /// The configuration without the pipelines whose templates have errors, and with a diagnostic for each error.
    package func addingTemplateErrors(
        _ errors: [TemplateProblem], in configuration: Configuration
    ) -> Configuration {
        adding(
            errors.map { error in
                var diagnostic = Diagnostic(
                    file: error.file, line: error.line, column: error.column, keyPath: "transform.template",
                    message: error.message)
                if let line = error.line, let column = error.column,
                    case .bytes(let bytes)? = try? fileSystem.content(
                        ofFile: error.file, limit: TemplateDefinition.maxBytes)
                {
                    diagnostic.excerpt = SourceText(file: error.file, bytes: bytes).excerpt(line: line, column: column)
                }
                return (error.pipeline, [diagnostic])
            }, to: configuration)
    }
}

/// An error in the template of a pipeline. The daemon lets a helper parse templates, and passes the errors to
/// ``ConfigurationLoader/addingTemplateErrors(_:in:)``.
package struct TemplateProblem: Hashable, Sendable {
    package var pipeline: String
    package var file: String
    /// Line and column count from 1; nil: the error concerns the whole template.
    package var line: Int?
    package var column: Int?
    package var message: String

    package init(pipeline: String, file: String, line: Int? = nil, column: Int? = nil, message: String) {
        self.pipeline = pipeline
        self.file = file
        self.line = line
        self.column = column
        self.message = message
    }
}

extension ValueKind where Value == String {
    /// An absolute path, or one that is relative to the directory of the configuration file.
    fileprivate static let templatePath = ValueKind(name: "the path of a template") { scalar throws(ValueError) in
        let path = try ValueKind.text.read(scalar)
        guard !path.isEmpty, !path.hasSuffix("/") else {
            throw ValueError("has to be the path of a file, not \(path.quoted)")
        }
        guard !path.unicodeScalars.contains(where: \.actsOnTerminal) else {
            throw ValueError("contains control characters")
        }
        guard !path.hasPrefix("~") else {
            throw ValueError(
                "has to be a path, not \(path.quoted)", remedy: "write the full path of the home directory")
        }
        guard path.utf8.count < 4096 else { throw ValueError("is longer than 4095 bytes, the limit for a path") }
        return path
    }
}
