import ConfigurationTestSupport
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("The key on-change")
struct HookTests {
    @Test("a hook is a command with literal arguments and a time limit")
    func read() throws {
        let text = """
            on-change:
            - exec: [/usr/lib/notify, "two words", "{id}", ""]
              timeout: 2min
            - {exec: [/usr/lib/other]}
            """
        let definition = try #require(load(["pipelines/jwks.yaml": pipeline(text)]).pipelines.first)
        #expect(
            definition.hooks == [
                HookDefinition(["/usr/lib/notify", "two words", "{id}", ""], timeout: .seconds(120)),
                HookDefinition(["/usr/lib/other"], timeout: .seconds(30)),
            ])
    }

    @Test("a hook may wait for a splay and take turns; a group without a number is for one hook at a time")
    func turns() throws {
        let text = """
            on-change:
            - {exec: [/x], splay: 30s, limit: {group: restarts, at-once: 2}}
            - {reload-unit: a.service, limit: {group: other}}
            """
        let hooks = try #require(load(["pipelines/jwks.yaml": pipeline(text)]).pipelines.first).hooks
        #expect(hooks.map(\.splay) == [.seconds(30), .zero])
        #expect(hooks.map(\.limit) == [HookLimit(group: "restarts", atOnce: 2), HookLimit(group: "other", atOnce: 1)])
    }

    @Test("two numbers for one group are an error that names both places, in one pipeline or in two")
    func conflicting() throws {
        let first = "on-change: [{exec: [/x], limit: {group: g, at-once: 2}}]"
        let second = "on-change: [{exec: [/x], limit: {group: g}}, {exec: [/y], limit: {group: h, at-once: 2}}]"
        let head = "source: {exec: [/x]}\ncache: {file: "
        let two = load([
            "pipelines/a.yaml": "\(head)a}\n\(first)\n", "pipelines/b.yaml": "\(head)b}\n\(second)\n",
        ])
        #expect(two.pipelines.map(\.name) == ["a"])
        let error = try #require(two.diagnostics.first)
        #expect(
            error.text().contains(
                "b.yaml:3:34: error: at most 1 hooks of the group 'g' run at the same time here, and at most 2 in "
                    + "pipeline 'a'; write the same number in both places, or name another group"))
        #expect(error.related?.file.hasSuffix("a.yaml") == true && error.related?.line == 3)
    }

    @Test("a hook may reload a unit")
    func unit() throws {
        let text = "on-change: [{reload-unit: 'a-b@c\\x2d.service', timeout: 5s}, {exec: [/x]}]"
        let hooks = try #require(load(["pipelines/jwks.yaml": pipeline(text)]).pipelines.first).hooks
        #expect(
            hooks == [
                HookDefinition(reloading: #"a-b@c\x2d.service"#, timeout: .seconds(5)), HookDefinition(["/x"]),
            ])
        #expect(hooks.map(\.identity) == [#"reload-unit a-b@c\x2d.service"#, "/x"])
    }

    @Test("a single hook need not be a list")
    func one() throws {
        let configuration = load(["pipelines/jwks.yaml": pipeline("on-change: {exec: [/x], timeout: 1h}")])
        #expect(configuration.pipelines.first?.hooks == [HookDefinition(["/x"], timeout: .seconds(3_600))])
    }

    @Test(
        "an error has a location and a remedy",
        arguments: [
            (
                "on-change: {exec: [bin/x]}",
                "3:20: error: 'exec' has to be an absolute path, not 'bin/x'; begin it with '/': the service has its "
                    + "own working directory"
            ),
            (
                "on-change: {exec: []}", "3:19: error: 'exec' is an empty list; add the path of a program"
            ),
            (
                "on-change: {exec: /x y}",
                "3:19: error: 'exec' has to be a list, not text; write [/usr/bin/program, argument]; Freshet uses no "
                    + "shell to split a line into words"
            ),
            (
                "on-change: []",
                "3:12: error: 'on-change' is an empty list; leave it out, or name a command: on-change: [{exec: [/usr/lib/program, argument]}]"
            ),
            (
                "on-change: [{timeout: 1s}]",
                "3:13: error: a hook has no 'exec'; name the command: exec: [/usr/lib/program, argument]"
            ),
            (
                "on-change: [/x]",
                "3:13: error: a hook of 'on-change' has to contain keys with values, not text; its keys are exec, reload-unit, timeout, splay, limit"
            ),
            (
                "on-change: {reload-unit: nginx}",
                "3:26: error: 'reload-unit' has to be the name of a unit with its type, not 'nginx'; write 'nginx.service'"
            ),
            (
                "on-change: {reload-unit: 'a b.service'}",
                "3:26: error: 'reload-unit' is not a valid unit name; use at most 255 letters, digits and :-_.\\@; "
                    + "systemd-escape(1) converts other characters"
            ),
            (
                "on-change: {reload-unit: a.service, exec: [/x]}",
                "3:13: error: a hook has 'exec' and 'reload-unit'; write two elements of 'on-change': they run one "
                    + "after the other"
            ),
            (
                "on-change: [{reload-unit: a.service}, {reload-unit: a.service, timeout: 5s}]",
                "3:39: error: the same unit appears twice; keep one of them (see jwks.yaml:3:13)"
            ),
            ("on-change: {exec: [/x], timeout: 999ms}", "3:34: error: 'timeout' has to be at least 1s"),
            ("on-change: {exec: [/x], timeout: 61min}", "3:34: error: 'timeout' has to be at most 1h"),
            (
                "on-change: {exec: [/x], timeout: infinity}",
                "3:34: error: 'timeout' cannot be 'infinity'; choose a finite duration"
            ),
            (
                "on-change: {exec: [/x], user: root}",
                "3:25: error: unknown key 'user'; the keys here are exec, reload-unit, timeout, splay, limit"
            ),
            (
                "on-change: [{exec: [/x, a]}, {exec: [/x, a], timeout: 5s}]",
                "3:30: error: the same command appears twice; keep one of them (see jwks.yaml:3:13)"
            ),
            (
                "on-change: [\((0...HookDefinition.perPipeline).map { "{exec: [/x\($0)]}" }.joined(separator: ", "))]",
                "3:1: error: there are more than 16 hooks; hooks run one after the other: let one program do the work "
                    + "of several"
            ),
        ])
    func invalid(line: String, expected: String) {
        #expect(errors(pipeline(line)) == ["jwks.yaml:\(expected)"])
    }

    @Test("the maximum number of hooks is accepted")
    func most() {
        let hooks = (1...HookDefinition.perPipeline).map { "{exec: [/x\($0)]}" }.joined(separator: ", ")
        #expect(errors(pipeline("on-change: [\(hooks)]")) == [])
    }

    @Test("a changed hook does not change the copy")
    func product() throws {
        let without = try #require(load(["pipelines/jwks.yaml": pipeline("")]).pipelines.first)
        let with = try #require(load(["pipelines/jwks.yaml": pipeline("on-change: {exec: [/x]}")]).pipelines.first)
        #expect(with != without && with.makesTheSame(as: without))
    }

    @Test("an error of the host environment is reported at the location of its hook")
    func place() {
        let text = pipeline("on-change:\n- exec: [/x]\n- exec: [/y]")
        let loader = ConfigurationLoader(
            searchPath: SearchPath(directories: ["/etc/freshet"]),
            fileSystem: InMemoryFileSystem(texts: ["/etc/freshet/pipelines/jwks.yaml": text]))
        let configuration = loader.adding(
            [
                HostEnvironmentError(
                    pipeline: "jwks", keys: ["on-change", "1", "exec"], message: "'/y' is not there",
                    remedy: nil)
            ], as: .warning, in: loader.load())
        #expect(configuration.diagnostics.map(\.line) == [5])
        #expect(configuration.pipelines.count == 1)
    }
}
