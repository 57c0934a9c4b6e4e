/// jq programs around configured programs, for checks that need more than true or false.
enum CheckProgram {
    /// Counts the members of the last list or object that a program gives.
    static func count(of items: String) -> String {
        // The line break closes a comment at the end of the program.
        """
        [\(items)
        ] | last | if type == "array" or type == "object" then length \
        else error("the items must be a list or an object, and are \\(type)") end
        """
    }

    /// Counts the items if the input itself is a list.
    static let countOfList = """
        if type == "array" then length \
        else error("it is not a list but \\(type); 'items' says where its items are, as in items: .entries") end
        """

    /// Counts the non-empty lines of a text.
    static let countOfLines = #"split("\n") | map(select(. != "" and . != "\r")) | length"#

    /// The last time that a program gives, as two outputs: seconds since 1970, and the form of RFC 3339. The time may
    /// be a number of seconds, a text of RFC 3339 or RFC 9110 (5.6.7), or a date alone, which begins at midnight UTC.
    /// jq 1.6 aborts its process at years that the C library does not support.
    static func time(of program: String) -> String {
        #"""
        [\#(program)
        ] | last | . as $found |
        if type == "number" then . elif type == "string" then
            [
                (capture("^(?<d>[0-9]{4}-[0-9]{2}-[0-9]{2})([Tt ](?<t>[0-9]{2}:[0-9]{2}:[0-9]{2})([.][0-9]+)?(?<z>[Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))?\\z")
                    | (.z // "Z") as $zone | (.d | [.[0:4], .[5:7], .[8:10] | tonumber]) as $day
                    | select(try (.d + "T00:00:00Z" | fromdateiso8601 | gmtime | [.[0], .[1] + 1, .[2]] == $day) catch false)
                    | (try (.d + "T" + (.t // "00:00:00") + "Z" | fromdateiso8601) catch empty)
                    - (if $zone == "Z" or $zone == "z" then 0 else
                        ($zone[1:3] | tonumber) * 3600 + ($zone[4:6] | tonumber) * 60
                        | if $zone[0:1] == "-" then -. else . end end)),
                (select(test("^[A-Za-z]+, [0-9]{2} [A-Za-z]+ [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT\\z"))
                    | try (strptime("%a, %d %b %Y %H:%M:%S GMT")
                        | select((.[0:3] + [0, 0, 0, 0, 0] | mktime | gmtime | .[0:3]) == .[0:3]) | mktime) catch empty)
            ]
            | if length > 0 then .[0]
            else error("\($found | tojson | .[0:100]) is not a time such as 2030-01-31T12:00:00Z") end
        else error("expected a time, found \(type)") end
        | if . >= -62135596800 and . < 253402300800 then ., (floor | todate)
        else error("\($found | tojson | .[0:100]) is not a time between the years 1 and 9999; a number must be in seconds, not milliseconds") end
        """#
    }
}
