import FreshetEventLoop
import FreshetHelper
import FreshetPipelines
import Glibc
import TestSupport
import Testing

@testable import FreshetEmitters

/// With the real program, which is in the same directory as the tests.
@Suite("Rendering in a helper process")
struct TemplateRenderTests {
    private static func transformer(
        _ running: RunningLoop, memory: MemoryBudget? = nil, program: String? = nil
    ) throws -> JQTransformer {
        JQTransformer(
            running.loop, workers: WorkerPool(), helper: try JQTransformer.realHelper(), memory: memory,
            warmth: JQTransformer.lastingWarmth,
            templateProgram: try program ?? "\(productsDirectory())/\(TemplateProgram.name)")
    }

    private static func template(_ text: String, _ escape: TemplateDefinition.Escape = .none) -> TemplateDefinition {
        TemplateDefinition(text, in: "/etc/t.mustache", escape: escape)
    }

    private static func failure(_ body: () async throws(FetchError) -> [UInt8]) async -> String {
        do throws(FetchError) {
            return "no failure: \(String(decoding: try await body(), as: UTF8.self))"
        } catch {
            guard case .failed(let failure) = error else { return "\(error)" }
            return "\(failure.kind): \(failure.message)"
        }
    }

    @Test("gives the text, and each failure names the file and the position", .hangLimit)
    func renders() async throws {
        let running = try RunningLoop()
        let transformer = try Self.transformer(running)
        #expect(
            try await transformer.render(Array(#"{"a":"it's"}"#.utf8), by: Self.template("x={{a}}", .shell))
                == Array("x='it'\\''s'".utf8))
        #expect(
            await Self.failure { () throws(FetchError) in
                try await transformer.render(Array("{}".utf8), by: Self.template("\n{{a}}"))
            } == "content: the template failed: /etc/t.mustache:2:1: 'a' is missing")
        #expect(
            await Self.failure { () throws(FetchError) in
                try await transformer.render(Array("{}".utf8), by: Self.template("{{#a}}"))
            }
                == "content: the template is not valid: /etc/t.mustache:1:1: the section 'a' is not closed: {{/a}} is missing"
        )
        #expect(
            await Self.failure { () throws(FetchError) in
                try await transformer.render(Array("{".utf8), by: Self.template("x"))
            }.hasPrefix("content: the input of the template /etc/t.mustache is not one JSON text: "))
        #expect(
            await Self.failure { () throws(FetchError) in try await transformer.render([], by: Self.template("x")) }
                == "content: the template /etc/t.mustache got no input: the jq program has no output")
        let error = try await transformer.error(in: Self.template("a\n {{/a}}"))
        #expect(error?.line == 2 && error?.column == 2 && error?.message == "{{/a}} closes no section")
        #expect(try await transformer.error(in: Self.template("{{a}}")) == nil)
        // jq programs still run, in their own helpers.
        #expect(try await transformer.transform(Array("[1]".utf8), by: ".[0]") == Array("1\n".utf8))
    }

    @Test("parses without an event loop for a check")
    func checks() throws {
        let program = try "\(productsDirectory())/\(TemplateProgram.name)"
        let error = TemplateSyntax.error(in: Self.template("a\n {{/a}}"), program: program)
        #expect(error?.line == 2 && error?.column == 2)
        #expect(TemplateSyntax.error(in: Self.template("{{a}}"), program: program) == nil)
        #expect(
            TemplateSyntax.error(in: Self.template("{{a}}"), program: "/bin/false")?.message.contains("crashed") == true
        )
    }

    @Test("is limited by the memory budget: too much output fails the run", .hangLimit)
    func memory() async throws {
        let running = try RunningLoop()
        let budget = MemoryBudget(limit: 64 << 20)
        let transformer = try Self.transformer(running, memory: budget)
        let items = Array("[\((0..<20_000).map(String.init).joined(separator: ","))]".utf8)
        let message = await Self.failure { () throws(FetchError) in
            try await transformer.render(
                items, by: Self.template("{{#.}}{{^x}}\(String(repeating: "y", count: 60_000)){{/x}}{{/.}}"))
        }
        #expect(message.contains("memory.max"), "\(message)")
        #expect(budget.counts.taken == 0)
        // Many small objects fit into the usual share, of which there is no other attempt here.
        let objects = Array("[\((0..<100_000).map { "{\"a\":\($0)}" }.joined(separator: ","))]".utf8)
        let reservation = try await budget.reserve(for: objects.count, .usual)
        let text = try await JQClient(transformer: transformer, pipeline: 1, memory: reservation).render(
            objects, by: Self.template("{{#.}}{{a}}\n{{/.}}"))
        #expect(text.count { $0 == UInt8(ascii: "\n") } == 100_000)
    }

    @Test("fails with the remedy if the program cannot be started", .hangLimit)
    func missingProgram() async throws {
        let running = try RunningLoop()
        let transformer = try Self.transformer(running, program: "/nonexistent/freshet-template")
        let message = await Self.failure { () throws(FetchError) in
            try await transformer.render(Array("1".utf8), by: Self.template("x"))
        }
        #expect(message.hasPrefix("local: could not start the template helper: "), "\(message)")
    }

    @Test("finds the program beside the daemon, and in the directory of an installation")
    func finds() throws {
        let directory = try TemporaryDirectory()
        let daemon = "\(directory.path)/sbin/freshetd"
        let installed = "\(directory.path)/libexec/freshet"
        #expect(TemplateProgram.path(besides: daemon) == nil)
        let problem = try #require(TemplateProgram.problem(besides: daemon))
        #expect(problem.message.contains("\(directory.path)/sbin"))
        for path in ["\(directory.path)/sbin", "\(directory.path)/libexec", installed] {
            try #require(mkdir(path, 0o755) == 0)
        }
        let program = "\(installed)/\(TemplateProgram.name)"
        let descriptor = creat(program, 0o755)
        try #require(descriptor >= 0)
        close(descriptor)
        #expect(TemplateProgram.path(besides: daemon) == "\(directory.path)/sbin/../libexec/freshet/freshet-template")
        #expect(TemplateProgram.problem(besides: daemon) == nil)
    }
}
