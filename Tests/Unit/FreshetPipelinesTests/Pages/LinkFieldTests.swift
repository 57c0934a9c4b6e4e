import Testing

@testable import FreshetPipelines

@Suite("The header field Link")
struct LinkFieldTests {
    @Test(
        "gives the first link with the relation, in any spelling",
        arguments: [
            ("<https://a.example/2>; rel=\"next\"", "https://a.example/2"),
            ("<?page=2>; rel=next, <?page=9>; rel=last", "?page=2"),
            ("<?page=9>; rel=\"last\" , <?page=2>; REL=\"prefetch NEXT\"", "?page=2"),
            ("</a,b;c>;title=\"x, <y>; rel=\\\"next\\\"\";rel=next", "/a,b;c"),
            ("<1>; rel=prev; rel=next, <2>; rel=next", "2"),
            ("<1>; rel=next; anchor=\"#foo\", <2>; rel = next", "2"),
            ("<>; rel=next", ""),
            (",, <2> ; ; rel=next ,", "2"),
            ("<1> rubbish; rel=next, <2>; rel=\"next", "2"),
            ("<1>; rel*=UTF-8''next, <2>;rel=next", "2"),
        ])
    func targets(_ value: String, _ target: String) {
        #expect(LinkField.target(of: "next", in: [value]) == target)
        #expect(LinkField.target(of: "Next", in: ["<0>; rel=self", value]) == target)
    }

    @Test(
        "gives nothing without such a link",
        arguments: [
            "", "next", "<1", "<1>", "<1>; rel=", "<1>; rel=nextish", "<1>; title=next", "rel=next", "\"<1>; rel=next",
        ])
    func none(_ value: String) {
        #expect(LinkField.target(of: "next", in: [value]) == nil)
        #expect(LinkField.target(of: "next", in: []) == nil)
    }
}
