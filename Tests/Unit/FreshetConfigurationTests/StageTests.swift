import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Fan-outs, several sources, and copies as sources")
struct StageTests {
    let topics = "url: https://a.example/topics, transform: .topics"

    @Test("every key of a fan-out is read")
    func each() throws {
        let configuration = load(
            pipeline: pipeline(
                source: """
                    {\(topics), each: {as: topic, key: .id, concurrency: 3, on-error: null,
                      url: 'https://a.example/{topic.id}/media', credential: token, transform: '{t: $topic, m: .}',
                      each: {as: medium, exec: [/bin/show, '{topic.id}', '{medium}', '{print $1}']}}}
                    """))
        #expect(configuration.diagnostics == [])
        let media = HTTPSource(
            url: "https://a.example/{topic.id}/media", headers: [.bearer("token")], host: "a.example")
        let inner = EachDefinition(
            as: "medium", StageDefinition(.command(["/bin/show", "{topic.id}", "{medium}", "{print $1}"])))
        let outer = EachDefinition(
            as: "topic", key: ".id", concurrency: 3, onError: .null,
            StageDefinition(.http(media), transform: "{t: $topic, m: .}", each: inner))
        let expected = StageDefinition(
            .http(HTTPSource(url: "https://a.example/topics", host: "a.example")), transform: ".topics", each: outer)
        let definition = try #require(configuration.pipelines.first)
        #expect(definition.stage == expected)
        #expect(definition.transform == nil)
        #expect(outer.placeholders == [.init("topic", path: ["id"])])
        #expect(inner.placeholders == [.init("medium")])
        #expect(definition.cacheMode == 0o640)
        #expect(definition.credentials.map(\.keys) == [["source", "each", "credential"]])
        #expect(
            Set(definition.programs) == [
                ProgramText(".topics"), ProgramText(".id"), ProgramText("{t: $topic, m: .}", variables: ["topic"]),
                ProgramText(".", variables: ["topic"]),
            ])
    }

    @Test("every value of publish is read", arguments: EachDefinition.Publish.allCases)
    func publish(_ publish: EachDefinition.Publish) {
        let configuration = load(
            pipeline: pipeline(source: "{\(topics), each: {as: t, file: /x, publish: \(publish)}}"))
        #expect(configuration.diagnostics == [])
        #expect(configuration.pipelines.first?.stage.each?.publish == publish)
    }

    @Test(
        "invalid fan-outs are errors",
        arguments: [
            ("{url: 'https://a.example/{t}'}", "'each' has no 'as'"),
            ("{as: t}", "'each' has none of 'url', 'file', 'exec' and 'pipeline'"),
            ("{as: 1t, file: /x}", "'as' has to be a name, not '1t'"),
            ("{as: t, file: /x, concurrency: 0}", "'concurrency' has to be"),
            ("{as: t, file: /x, concurrency: 65}", "'concurrency' has to be"),
            ("{as: t, file: /x, on-error: ignore}", "'on-error' has to be one of previous, null, omit, fail"),
            ("{as: t, file: /x, publish: eager}", "'publish' has to be one of complete, progressive"),
            (
                "{as: t, file: /x, each: {as: u, file: /y, publish: progressive}}",
                "'publish: progressive' is allowed only in 'each' directly below 'source'"
            ),
            (
                "{as: t, file: /x, publish: progressive, each: {as: u, file: /y}}",
                "'publish: progressive' is not allowed with an inner 'each'"
            ),
            ("{as: topic, url: 'https://a.example/{topics.id}'}", "has the unknown placeholder '{topics}'"),
            ("{as: t, url: 'https://{t}.example/'}", "has the placeholder '{t}' before its path"),
            ("{as: t, url: 'https://a.example/{t'}", "brace"),
            (
                "{as: t, file: /x, each: {as: t, file: /y}}",
                "the name 't' is already used by a parameter or an outer "
                    + "'each'"
            ),
            (
                "{as: a, file: /x, each: {as: b, file: /x, each: {as: c, file: /x, each: {as: d, file: /x}}}}",
                "'each' is nested more than 3 levels deep"
            ),
        ])
    func eachErrors(_ each: String, _ expected: String) throws {
        let messages = load(pipeline: pipeline(source: "{\(topics), each: \(each)}")).diagnostics.map(\.message)
        #expect(messages.contains { $0.contains(expected) }, "\(messages)")
    }

    @Test("a misspelled placeholder gets a suggestion")
    func suggestion() {
        let found = errors(pipeline(source: "{\(topics), each: {as: topic, url: 'https://a.example/{topics.id}'}}"))
        #expect(found.count == 1)
        #expect(found.first?.contains("did you mean '{topic}'?") == true)
    }

    @Test("both transforms of a pipeline with a fan-out are programs")
    func twoTransforms() throws {
        let configuration = load(
            pipeline: pipeline("transform: length", source: "{\(topics), each: {as: t, file: /x}}"))
        let definition = try #require(configuration.pipelines.first)
        #expect(definition.transform == "length")
        #expect(definition.stage.transform == ".topics")
    }

    let shop = """
        sources:
          items: {pipeline: catalogue, transform: .items}
          stock: {url: https://b.example/, credential: stock}
        combine: .items + .stock
        transform: sort
        cache: {file: shop.json}
        """

    @Test("several sources are read, also another pipeline's copy")
    func sources() throws {
        let configuration = load([
            "pipelines/shop.yaml": shop,
            "pipelines/catalogue.yaml": "source: {file: /x}\ncache: {file: all.json}\n",
        ])
        #expect(configuration.diagnostics == [])
        let definition = try #require(configuration.pipelines.first { $0.name == "shop" })
        let stock = HTTPSource(url: "https://b.example/", headers: [.bearer("stock")], host: "b.example")
        let joined: [JoinedSource] = [
            JoinedSource("items", StageDefinition(.copy(of: "catalogue", file: "all.json"), transform: ".items")),
            JoinedSource("stock", StageDefinition(.http(stock))),
        ]
        #expect(definition.stage == StageDefinition(.joined(joined), transform: ".items + .stock"))
        #expect(definition.transform == "sort")
        #expect(definition.refresh.after == ["catalogue"])
        #expect(definition.needsNetwork)
        #expect(definition.credentials.map(\.keys) == [["sources", "stock", "credential"]])
    }

    @Test(
        "invalid sources of a joined pipeline are errors",
        arguments: [
            ("sources: {a: {file: /x}}", "'sources' has no 'combine'"),
            ("sources: {}\ncombine: .", "'sources' is empty"),
            ("sources: [a]\ncombine: .", "'sources' has to contain names with sources"),
            ("sources: {a b: {file: /x}}\ncombine: .", "is not a valid source name"),
            ("sources: {a: {}}\ncombine: .", "'source' has none of"),
            ("source: {file: /x}\nsources: {a: {file: /x}}\ncombine: .", "'source' and 'sources' exclude each other"),
            ("source: {file: /x}\ncombine: .", "'combine' needs 'sources'"),
            ("source: {pipeline: nowhere}", "there is no pipeline 'nowhere'"),
            ("source: {pipeline: jwks}", "'pipeline' names this pipeline itself, 'jwks'"),
        ])
    func sourcesErrors(_ lines: String, _ expected: String) {
        let messages = load(pipeline: lines + "\ncache: {file: a}\n").diagnostics.map(\.message)
        #expect(messages.contains { $0.contains(expected) }, "\(messages)")
    }

    @Test("a cycle of copies is shown in full, whichever key has the names")
    func cycle() {
        let configuration = load([
            "pipelines/a.yaml": "source: {pipeline: b}\ncache: {file: a}\n",
            "pipelines/b.yaml": "source: {file: /x}\nrefresh: {after: [a]}\ncache: {file: b}\n",
        ])
        #expect(
            configuration.diagnostics.map(\.message).contains { $0.hasSuffix("makes a cycle: a → b → a") })
    }

    @Test("a copy made of a restricted copy is restricted too, also indirectly, unless cache.mode is set")
    func restricted() {
        let configuration = load([
            "pipelines/a.yaml": "source: {pipeline: b}\ncache: {file: a}\n",
            "pipelines/b.yaml": "source: {pipeline: c}\ncache: {file: b}\n",
            "pipelines/c.yaml": "source: {url: https://c.example/, credential: c}\ncache: {file: c}\n",
            "pipelines/d.yaml": "source: {pipeline: b}\ncache: {file: d, mode: '0644'}\n",
            "pipelines/e.yaml": "source: {pipeline: d}\ncache: {file: e}\n",
        ])
        #expect(configuration.diagnostics == [])
        let modes = Dictionary(uniqueKeysWithValues: configuration.pipelines.map { ($0.name, $0.cacheMode) })
        #expect(modes == ["a": 0o640, "b": 0o640, "c": 0o640, "d": 0o644, "e": 0o644])
    }
}
