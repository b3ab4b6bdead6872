/* Mesh files: good ones of every kind, round trips between formats, and every way of being wrong.
 */
#include "geometry/meshfile.h"
#include "encode.h"
#include "meshes.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[128];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/undine-meshfile-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void write_bytes(const char *name, const void *bytes, size_t size)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static un_status load_bytes(un_context *ctx, const char *name, const void *bytes, size_t size,
                            un_trimesh *mesh)
{
    write_bytes(name, bytes, size);
    un_status status = un_trimesh_load(ctx, path, mesh);
    unlink(path);
    return status;
}

static un_status load_text(un_context *ctx, const char *name, const char *text, un_trimesh *mesh)
{
    return load_bytes(ctx, name, text, strlen(text), mesh);
}

/* ---- numbers ---- */

static bool parse(const char *text, double *value)
{
    mesh_file file = {.bytes = text, .size = strlen(text)};
    file.locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    mesh_text t = mesh_text_start(&file);
    bool good = mesh_text_number(&t, value) && t.at == t.end;
    freelocale(file.locale);
    return good;
}

/* Whether any number was read, or the cursor moved. */
static bool parse_some(const char *text, double *value)
{
    mesh_file file = {.bytes = text, .size = strlen(text)};
    mesh_text t = mesh_text_start(&file);
    return mesh_text_number(&t, value) || t.at != text;
}

static void check_number(const char *text)
{
    double value, expected = strtod(text, NULL);
    if (!parse(text, &value)) fail_msg("\"%s\" was not read", text);
    if (memcmp(&value, &expected, sizeof value) != 0)
        fail_msg("\"%s\" read as %.17g, not %.17g", text, value, expected);
}

static void numbers_are_correctly_rounded(void **state)
{
    (void)state;
    static const char *good[] = {"0",
                                 "-0",
                                 "+1",
                                 "1.",
                                 ".5",
                                 "-.5e1",
                                 "1e22",
                                 "1e23",
                                 "1e-22",
                                 "1e-23",
                                 "9007199254740993",
                                 "9007199254740992",
                                 "123456789012345678901234567890",
                                 "0.1",
                                 "0.3",
                                 "1e400",
                                 "-1e400",
                                 "1e-400",
                                 "4.9e-324",
                                 "2.2250738585072011e-308",
                                 "1.7976931348623157e308",
                                 "1E+05",
                                 "1e-0",
                                 "0000000000000000000000000000001",
                                 "0.0000000000000000000000000000001",
                                 "3.14159265358979323846264338327950288",
                                 "1e99999999999999999999",
                                 "0e99999999999999999999",
                                 "18446744073709551616",
                                 "1e18446744073709551617",
                                 "1e-18446744073709551617",
                                 "0.18446744073709551616e3"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) check_number(good[i]);
    static const char *bad[] = {"",    "-",   ".",   "e5",    "1e",     "1e+",  "x",   "1x", "0x10",
                                "1,5", "1/2", "--1", "1.5.2", "1.#IND", "1e5e", "+-1", "- 1"};
    double value;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parse_some(bad[i], &value)) fail_msg("\"%s\" was read as %g", bad[i], value);
    static const char *names[] = {"nan", "-nan", "NaN", "inf", "-Infinity", "nan(ind)"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_true(parse(names[i], &value));
        assert_true(isnan(value));
    }
    for (uint64_t i = 0; i < 60000; i++) {
        uint64_t bits = un_hash64(i);
        double any;
        char text[64];
        memcpy(&any, &bits, sizeof any);
        if (!isfinite(any)) continue;
        static const char *formats[] = {"%.17g", "%.9g", "%.6e", "%.15f", "%.3f", "%g"};
        double modest = (un_random(i, 1) - 0.5) * pow(10, floor(12 * un_random(i, 2)) - 6);
        snprintf(text, sizeof text, formats[i % 6], i % 5 ? modest : i % 6 < 3 ? any : modest);
        check_number(text);
    }
    /* A program around us that speaks German does not matter. */
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") && parse("1.2345678901234567", &value))
        assert_true(value > 1.2);
    setlocale(LC_NUMERIC, "C");
}

/* ---- good files ---- */

/* A tetrahedron in every format: {0,0,0}, {1,0,0}, {0,1,0}, {0,0,1}. */
static void check_tetrahedron(un_context *ctx, const char *what, un_trimesh *m)
{
    un_trimesh_report r;
    check_ok(ctx, un_trimesh_examine(ctx, m, &r));
    if (m->triangle_count != 4 || r.open_edges || r.nonmanifold_edges ||
        fabs(r.volume - 1.0 / 6) > 1e-14 || r.bounds.min.x != 0 || r.bounds.max.z != 1)
        fail_msg("%s: %d triangles, %d open, %d others, volume %g", what, m->triangle_count,
                 r.open_edges, r.nonmanifold_edges, r.volume);
    un_trimesh_free(ctx, m);
}

static const char *const GOOD[][2] = {
    {"plain.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"},
    {"full.obj",
     "# comment\r\nmtllib a.mtl\r\no thing\r\nv 0 0 0 1.0\r\nv 1 0 0 0.5 0.5 0.5\r\n  v 0 1 0\r\n"
     "v\t0\t0\t1\r\nvt 0 0\r\nvn 0 0 1\r\n\r\ng a \\\r\nf 9 9 9\r\nusemtl x\r\ns off\r\nf 1/1 3/1 "
     "2/1\r\n"
     "f 1//1 2//1 4//1\r\nf 2/1/1 3/1/1 4/1/1 # four\r\nf -4 -1 -2\r\nl 1 2\r\np 1"},
    {"early.obj", "f 1 3 2\nf 1 2 4\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 2 3 4\nf 1 4 3"},
    {"folded.obj", "v 0 \\\n0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n# \\\nf 1 \\\r\n3 2\nf 1 2 4\nf 2 3 4\n"
                   "f 1 4 3\\\n"},
    {"noname", "# only the contents tell\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\n"
               "f 2 3 4\nf 1 4 3\n"},
    {"bom.obj", "\xef\xbb\xbfv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\n"
                "f 1 4 3\n"},
    {"plain.off", "OFF\n4 4 6\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 0 3 2\n"},
    {"comments.off",
     "# first\nOFF # second\n\n4 4 0 # third\n0 0 0\n# fourth\n1 0 0\n0 1 0\n\n0 0 1\n3 0 2 1\n"
     "3 0 1 3 255 0 0\n2 0 1\n3 1 2 3 1 0.5 0 1\n"},
    {"color.off", "COFF\n4 4 6\n0 0 0 255 0 0 255\n1 0 0 0 0 0 0\n0 1 0 0 0 0 0\n0 0 1 1 1 1 1\n"
                  "3 0 2 1\n3 0 1 3\n3 1 2 3\n3 0 3 2\n"},
    {"normal.off", "STCNOFF\r\n4 4 6\r\n0 0 0 0 0 1 1 1 1 0 0\r\n1 0 0 0 0 1\r\n0 1 0 0 0 1\r\n"
                   "0 0 1 0 0 1\r\n3 0 2 1\r\n3 0 1 3\r\n3 1 2 3\r\n3 0 3 2\r\n"},
    {"glued.off", "OFF4 4 6\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 0 3 2"},
    {"plain.ply",
     "ply\nformat ascii 1.0\ncomment by hand\nobj_info x\nelement vertex 4\nproperty float x\n"
     "property float y\nproperty float z\nelement face 4\nproperty list uchar int vertex_indices\n"
     "end_header\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 0 3 2\n"},
    {"shuffled.ply",
     "ply\r\nformat ascii 1.0\r\nelement other 2\r\nproperty list uint8 float64 stuff\r\n"
     "property char tag\r\nelement face 4\r\nproperty uchar flags\r\n"
     "property list int uint vertex_index\r\nproperty list ushort float texcoord\r\n"
     "element vertex 4\r\nproperty uchar red\r\nproperty double z\r\nproperty float32 x\r\n"
     "property list uchar int rings\r\nproperty int16 y\r\nelement empty 4000000000\r\n"
     "end_header\r\n2 1.5 nan 7\r\n0 7\r\n9 3 0 2 1 2 .5 .5\r\n9 3 0 1 3 0\r\n9 3 1 2 3 1 0\r\n"
     "9 3 0 3 2 0\r\n255 0 0 0 0\r\n255 0 1 2 5 6 0\r\n0 0 0 0 1\r\n0 1 0 1 9 0\r\n"},
    {"mac.ply",
     "ply\rformat ascii 1.0\relement vertex 4\rproperty float x\rproperty float y\r"
     "property float z\relement face 4\rproperty list uchar int vertex_indices\rend_header\r"
     "0 0 0\r1 0 0\r0 1 0\r0 0 1\r3 0 2 1\r3 0 1 3\r3 1 2 3\r3 0 3 2\r"},
    {"plain.stl",
     "solid a name with words\nfacet normal 0 0 -1\nouter loop\nvertex 0 0 0\nvertex 0 1 0\n"
     "vertex 1 0 0\nendloop\nendfacet\nfacet normal 0 -1 0\n outer loop\n  vertex 0 0 0\n"
     "  vertex 1 0 0\n  vertex 0 0 1\n endloop\nendfacet\nfacet normal nan nan nan\nouter loop\n"
     "vertex 1 0 0\nvertex 0 1 0\nvertex 0 0 1\nendloop\nendfacet\nfacet normal -1 0 0\nouter "
     "loop\n"
     "vertex 0 0 0\nvertex 0 0 1\nvertex 0 1 0\nendloop\nendfacet\nendsolid a name with words\n"},
    {"loud.stl",
     "SOLID\r\nFACET NORMAL 0 0 -1\r\nOUTER LOOP\r\nVERTEX 0 0 0\r\nVERTEX 0 1 0\r\nVERTEX 1 0 "
     "0\r\n"
     "ENDLOOP\r\nENDFACET\r\nENDSOLID\r\nsolid two\r\nFACET NORMAL 0 -1 0\r\nOUTER LOOP\r\n"
     "VERTEX 0 0 0\r\nVERTEX 1E0 0 0\r\nVERTEX 0 0 1\r\nENDLOOP\r\nENDFACET\r\nfacet\r\nOUTER "
     "LOOP\r\n"
     "VERTEX 1 0 0\r\nVERTEX 0 1 0\r\nVERTEX 0 0 1\r\nENDLOOP\r\nENDFACET\r\nfacet normal 0 0 0\r\n"
     "outer loop vertex 0 0 0 vertex 0 0 1 vertex 0 1 0 endloop endfacet endsolid"},
};

static void good_files(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_trimesh m;
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        check_ok(ctx, load_text(ctx, GOOD[i][0], GOOD[i][1], &m));
        if (strstr(GOOD[i][0], "comments.off")) { /* its last face is an edge */
            assert_int_equal(m.triangle_count, 3);
            un_trimesh_free(ctx, &m);
            continue;
        }
        check_tetrahedron(ctx, GOOD[i][0], &m);
    }
    /* Contents count more than names. */
    check_ok(ctx, load_text(ctx, "wrong.stl", GOOD[0][1], &m));
    check_tetrahedron(ctx, "an OBJ named .stl", &m);
    /* Polygons become fans, in all three formats that have them. */
    static const char *squares[] = {
        "v 0 0 0\nv 1 0 0\nv 1 1 0\nv .5 1.5 0\nv 0 1 0\nf 1 2 3 4 5\n",
        "OFF\n5 1 0\n0 0 0\n1 0 0\n1 1 0\n.5 1.5 0\n0 1 0\n5 0 1 2 3 4\n",
        "ply\nformat ascii 1.0\nelement vertex 5\nproperty float x\nproperty float y\n"
        "property float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n"
        "0 0 0\n1 0 0\n1 1 0\n.5 1.5 0\n0 1 0\n5 0 1 2 3 4\n"};
    static const char *loop =
        "solid\nfacet\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 1 1 0\nvertex .5 1.5 0\n"
        "vertex 0 1 0\nendloop\nendfacet\nendsolid";
    for (int i = 0; i < 4; i++) {
        check_ok(ctx, load_text(ctx, "polygon", i < 3 ? squares[i] : loop, &m));
        assert_int_equal(m.triangle_count, 3);
        const int32_t fan[3][3] = {{0, 1, 2}, {0, 2, 3}, {0, 3, 4}};
        assert_memory_equal(m.triangle, fan, sizeof fan);
        un_trimesh_free(ctx, &m);
    }
    /* Normals and velocities that are no numbers do not spoil a mesh. */
    check_ok(ctx, load_text(ctx, "a.ply",
                            "ply\nformat ascii 1.0\nelement vertex 3\nproperty float vx\n"
                            "property float vy\nproperty float vz\nproperty float x\n"
                            "property float y\nproperty float z\nproperty float nx\n"
                            "property float ny\nproperty float nz\nelement face 1\n"
                            "property list uchar int vertex_indices\nend_header\n"
                            "1 2 3 0 0 0 0 nan 1\nnan 0 0 1 0 0 0 0 1\n1 2 3 0 1 0 0 0 1\n"
                            "3 0 1 2\n",
                            &m));
    assert_true(m.normal[0].z == 0 && m.velocity[0].z == 3);
    assert_true(m.normal[1].z == 1 && m.velocity[1].y == 0);
    un_trimesh_free(ctx, &m);
    check_context_end(ctx);
}

/* ---- round trips ---- */

static void round_trips(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_trimesh ball = mesh_ball(ctx, 15, 0.1), m;
    for (int f = 0; f < FORMATS; f++) {
        bool single = f == STL_BINARY || f == STL_SOLID || f == PLY_FLOAT;
        text_buffer b = encode(&ball, (format)f);
        check_ok(ctx, load_bytes(ctx, "no-suffix", b.bytes, b.size, &m));
        free(b.bytes);
        assert_int_equal(m.triangle_count, ball.triangle_count);
        for (int32_t t = 0; t < m.triangle_count; t++)
            for (int i = 0; i < 3; i++) {
                un_vec3 p = m.position[m.triangle[t][i]];
                un_vec3 q = ball.position[ball.triangle[t][i]];
                if (single) q = un_v3((float)q.x, (float)q.y, (float)q.z);
                assert_true(p.x == q.x && p.y == q.y && p.z == q.z);
            }
        assert_int_equal(m.normal != NULL, f == PLY_FLOAT);
        assert_int_equal(m.velocity != NULL, f == PLY_FLOAT);
        for (int32_t n = 0; n < m.vertex_count && f == PLY_FLOAT; n++) {
            assert_true(m.normal[n].x == n && m.normal[n].z == n + 2);
            assert_true(m.velocity[n].x == n + 3 && m.velocity[n].z == n + 5);
        }
        un_trimesh_free(ctx, &m);
    }
    un_trimesh_free(ctx, &ball);
    check_context_end(ctx);
}

/* ---- bad files ---- */

#define PLY_HEAD(v, f)                                                                             \
    "ply\nformat ascii 1.0\nelement vertex " v "\nproperty float x\nproperty float y\n"            \
    "property float z\nelement face " f "\nproperty list uchar int vertex_indices\nend_header\n"
#define PLY_BINARY_HEAD(v, f)                                                                      \
    "ply\nformat binary_little_endian 1.0\nelement vertex " v "\nproperty float x\n"               \
    "property float y\nproperty float z\nelement face " f                                          \
    "\nproperty list int int vertex_indices\nend_header\n"

typedef struct bad_file {
    const char *name, *text, *message; /* what the message must say */
} bad_file;

static const bad_file BAD[] = {
    {"empty.obj", "", "is empty"},
    {"empty.ply", "", "is empty"},
    {"what.txt", "Dear Sir,\nnot a mesh.\n", "export it as PLY"},
    {"points.obj", "v 0 0 0\nv 1 0 0\n", "no triangles (2 vertices)"},
    {"comment.obj", "# nothing here\n", "no triangles"},
    {"word.obj", "v 0 0 0\nv 1 zero 0\n", ":2: a coordinate expected, not \"zero 0\""},
    {"short.obj", "v 0 0 0\nv 1 0\nf 1 2 1\n", ":2: a coordinate expected, not the end of the"},
    {"nan.obj", "v 0 0 0\nv 0 nan 0\n", ":2: the vertex has a coordinate that is not a finite"},
    {"inf.obj", "v 0 0 0\nv 0 1e999 0\n", ":2: the vertex has a coordinate that is not a finite"},
    {"far.obj", "v 0 0 0\n\nv 0 1e200 0\n", ":3: the vertex has a coordinate that is not a finite"},
    {"range.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nf 1 2 9\n", ":5: vertex 9 does not exist"},
    {"zero.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0 1 2\n", ":4: vertex 0 does not exist"},
    {"minus.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf -4 1 2\n", ":4: vertex -4 does not exist"},
    {"huge.obj", "v 0 0 0\nf 1 2 99999999999999999999999\n", ":2: vertex"},
    {"wraps.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 18446744073709551619\n", ":4: vertex"},
    {"corner.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 three\n", ":4: a vertex number expected"},
    {"slash.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1/1/1/1 2 3\n", ":4: a corner like"},
    {"float.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1.5 2 3\n", ":4: a corner like"},
    {"cut.off", "OFF\n", "counts of vertices"},
    {"cut2.off", "OFF\n4 4 6\n0 0 0\n1 0 0\n0 1 0\n", ":6: a vertex expected, not the end of"},
    {"cut3.off", "OFF\n3 2 6\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2 \n", ":7: a face expected, not the end"},
    {"huge.off", "OFF\n4000000000 1 0\n0 0 0\n", ":4: a vertex expected, not the end of"},
    {"minus.off", "OFF\n-4 1 0\n0 0 0\n", ":2: the counts of vertices"},
    {"nan.off", "OFF\n3 1 0\n0 0 0\n1 0 0\nnan 0 0\n3 0 1 2\n", ":5: the vertex has a coordinate"},
    {"range.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n", ":6: vertex 3 does not exist"},
    {"minus2.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 -1\n", ":6: vertex -1 does not exist"},
    {"short.off", "OFF\n3 1 0\n0 0 0\n1 0\n0 1 0\n3 0 1 2\n", ":4: a coordinate expected"},
    {"many.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n900000000 0 1 2\n", ":6: a vertex number expec"},
    {"four.off", "4OFF\n3 1 0\n0 0 0 1\n", ":1: has other than three dimensions"},
    {"binary.off", "OFF BINARY\n\1\2\3\4", ":1: binary OFF is not read"},
    {"name.off", "off\n3 1 0\n", ":1: OFF expected"},
    {"cut.stl", "solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\n", ":5: vertex or endloop"},
    {"open.stl", "solid x\n", ":2: the file ends before endsolid"},
    {"word.stl", "solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0 up\n",
     ":4: a coordinate expected, not \"up\""},
    {"nan.stl", "solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0 nan\n", ":4: the vertex has"},
    {"none.stl", "solid x\nendsolid x\n", "no triangles"},
    {"odd.stl", "solid x\nfacet normal 0 0 1\nouter space\n", ":3: loop expected, not \"space\""},
    {"prose.stl", "solid x\nand then some\n", ":2: solid, facet or endsolid expected"},
    {"tiny.stl", "\1\2\3", "byte 3: the file ends within its head"},
    {"head.ply", "ply\n", "end_header expected, not the end of the file"},
    {"format.ply", "ply\nformat utf8 1.0\n", ":2: ascii, binary_little_endian"},
    {"formatless.ply", "ply\nelement vertex 0\nend_header\n", ":3: a line with the format"},
    {"type.ply", "ply\nformat ascii 1.0\nelement vertex 1\nproperty quad x\n",
     ":4: a type like float"},
    {"orphan.ply", "ply\nformat ascii 1.0\nproperty float x\n", ":3: an element before"},
    {"count.ply", "ply\nformat ascii 1.0\nelement vertex many\n", ":3: a count of elements"},
    {"minus.ply", "ply\nformat ascii 1.0\nelement vertex -3\n", ":3: a count of elements"},
    {"list.ply", "ply\nformat ascii 1.0\nelement face 1\nproperty list float int vertex_indices\n",
     ":4: an integer type for the length"},
    {"junk.ply", "ply\nformat ascii 1.0\nhello\n", ":3: a line of a PLY head expected"},
    {"noxyz.ply", "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nend_header\n0\n",
     ":5: vertices lack x, y or z"},
    {"noindex.ply",
     "ply\nformat ascii 1.0\nelement face 1\nproperty list uchar int other\nend_header\n0\n",
     ":5: faces have no vertex_indices"},
    {"points.ply", PLY_HEAD("1", "0") "0 0 0\n", "no triangles (1 vertices)"},
    {"huge.ply", PLY_HEAD("4000000000", "1") "0 0 0\n", "the file ends before its last element"},
    {"huge2.ply", PLY_HEAD("99999999999999999999999", "1") "0 0 0\n", "ends before its last"},
    {"hugef.ply", PLY_HEAD("1", "4000000000") "0 0 0\n", "the file ends before its last element"},
    {"hugeb.ply", PLY_BINARY_HEAD("4000000000", "1") "abcdefghijkl", ": byte"},
    {"hugebf.ply", PLY_BINARY_HEAD("1", "4000000000") "abcdabcdabcd", "ends before its last"},
    {"hugebl.ply", PLY_BINARY_HEAD("1", "1") "abcdabcdabcd\xff\xff\xff\x7f", "ends before its las"},
    {"minusbl.ply", PLY_BINARY_HEAD("1", "1") "abcdabcdabcd\xff\xff\xff\xff", "impossible length"},
    {"nan.ply", PLY_HEAD("3", "1") "0 0 0\n1 nan 0\n0 1 0\n3 0 1 2\n",
     ":11: vertex 1 has a coordinate that is not a finite"},
    {"range.ply", PLY_HEAD("3", "1") "0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n",
     ":13: face 0 names a vertex that does not exist"},
    {"minusi.ply", PLY_HEAD("3", "1") "0 0 0\n1 0 0\n0 1 0\n3 0 1 -1\n", ":13: face 0 names"},
    {"half.ply", PLY_HEAD("3", "1") "0 0 0\n1 0 0\n0 1 0\n3 0 1 1.5\n", ":13: face 0 names"},
    {"nani.ply", PLY_HEAD("3", "1") "0 0 0\n1 0 0\n0 1 0\n3 0 1 nan\n", ":13: face 0 names"},
    {"nanl.ply", PLY_HEAD("3", "1") "0 0 0\n1 0 0\n0 1 0\nnan 0 1 2\n", "impossible length"},
    {"word.ply", PLY_HEAD("3", "1") "0 0 0\n1 0 x\n0 1 0\n3 0 1 2\n", ":11: a number expected"},
    {"hash.ply", PLY_HEAD("3", "1") "0 0 0\n# 1\n1 0 0\n0 1 0\n3 0 1 2\n", ":11: a number exp"},
    {"more.ply", PLY_HEAD("3", "1") "0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n7\n", ":14: more follows"},
    {"twice.ply",
     "ply\nformat ascii 1.0\nelement vertex 1\nproperty int x\nproperty int y\n"
     "property int z\nelement vertex 1\n",
     ":7: vertices twice"},
};

static void bad_files(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        un_trimesh m;
        un_status status = load_text(ctx, BAD[i].name, BAD[i].text, &m);
        const char *message = un_context_message(ctx);
        if (status != UN_ERROR_FILE || !strstr(message, BAD[i].message) ||
            strncmp(message, path, strlen(path)) != 0)
            fail_msg("%s: status %d, \"%s\", not \"%s\"", BAD[i].name, (int)status, message,
                     BAD[i].message);
        assert_null(m.position);
        assert_true(un_context_peak_bytes(ctx) < 100000);
    }
    check_context_end(ctx);
}

static void check_refused(un_context *ctx, const char *name, const char *message)
{
    un_trimesh m;
    assert_int_equal(un_trimesh_load(ctx, name, &m), UN_ERROR_FILE);
    if (!strstr(un_context_message(ctx), message))
        fail_msg("\"%s\" does not say \"%s\"", un_context_message(ctx), message);
}

static void no_files_at_all(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    check_refused(ctx, folder, "is a folder");
    check_refused(ctx, "/nowhere/at/all.ply", "No such file");
    check_refused(ctx, "/dev/zero", "not a regular file");
    check_refused(ctx, "", "cannot open");
    snprintf(path, sizeof path, "%s/pipe.ply", folder);
    assert_int_equal(mkfifo(path, 0600), 0); /* with nobody at the other end */
    check_refused(ctx, path, "not a regular file");
    unlink(path);
    check_context_end(ctx);
}

/* A binary STL that is cut, padded, promises too much, or holds what is no number. */
static void bad_binary_stl(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_trimesh cube = mesh_cube(ctx, un_v3(0, 0, 0)), m;
    for (format f = STL_BINARY; f <= STL_SOLID; f++) {
        text_buffer b = encode(&cube, f);
        const char *name = f == STL_SOLID ? "solid.stl" : "plain.stl";
        assert_int_equal(load_bytes(ctx, name, b.bytes, b.size - 1, &m), UN_ERROR_FILE);
        assert_non_null(strstr(un_context_message(ctx), "byte 683: the file ends after 11 of 12"));
        put(&b, "padding", 7);
        check_ok(ctx, load_bytes(ctx, name, b.bytes, b.size, &m));
        assert_int_equal(m.triangle_count, 12);
        un_trimesh_free(ctx, &m);
        b.size -= 7;
        const float nan = NAN;
        memcpy(b.bytes + 84 + 50 + 24, &nan, 4);
        assert_int_equal(load_bytes(ctx, name, b.bytes, b.size, &m), UN_ERROR_FILE);
        assert_non_null(strstr(un_context_message(ctx), "byte 158: triangle 2"));
        memset(b.bytes + 80, 0xff, 4); /* four billion triangles */
        assert_int_equal(load_bytes(ctx, name, b.bytes, b.size, &m), UN_ERROR_FILE);
        assert_non_null(strstr(un_context_message(ctx), "of 4294967295 triangles"));
        free(b.bytes);
    }
    un_trimesh_free(ctx, &cube);
    check_context_end(ctx);
}

/* Whatever the bytes: loaded, with every index in range, or refused in a sentence. */
static void check_survives(un_context *ctx, const char *name, const char *bytes, size_t size)
{
    un_trimesh m;
    un_status status = load_bytes(ctx, name, bytes, size, &m);
    if (status != UN_OK) {
        assert_int_equal(status, UN_ERROR_FILE);
        assert_non_null(strstr(un_context_message(ctx), folder));
        return;
    }
    assert_true(m.triangle_count > 0);
    for (int32_t t = 0; t < m.triangle_count; t++)
        for (int i = 0; i < 3; i++) assert_in_range(m.triangle[t][i], 0, m.vertex_count - 1);
    for (int32_t n = 0; n < m.vertex_count; n++) assert_true(un_finite3(m.position[n]));
    un_trimesh_free(ctx, &m);
}

static void truncated_anywhere(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(1);
    un_trimesh cube = mesh_cube(ctx, un_v3(0.1, 0.2, 0.3));
    for (int f = 0; f < FORMATS; f++) {
        text_buffer b = encode(&cube, (format)f);
        for (size_t size = 0; size < b.size; size++)
            check_survives(ctx, FORMAT_NAME[f], b.bytes, size);
        free(b.bytes);
    }
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++)
        for (size_t size = 0; size < strlen(GOOD[i][1]); size += 3)
            check_survives(ctx, GOOD[i][0], GOOD[i][1], size);
    un_trimesh_free(ctx, &cube);
    check_context_end(ctx);
}

static void damaged_anywhere(void **state)
{
    (void)state;
    un_context *ctx = check_context_threads(1);
    un_trimesh cube = mesh_cube(ctx, un_v3(0.1, 0.2, 0.3));
    for (int f = 0; f < FORMATS; f++) {
        text_buffer b = encode(&cube, (format)f);
        char *copy = malloc(b.size);
        for (uint64_t i = 0; i < 700; i++) {
            memcpy(copy, b.bytes, b.size);
            for (uint64_t k = 0; k <= i % 4; k++) {
                uint64_t r = un_hash64(i * 4 + k + 100000 * (uint64_t)f);
                copy[(r >> 8) % b.size] = i % 2 ? (char)r : "0123456789-.e \n#/"[r % 17];
            }
            check_survives(ctx, FORMAT_NAME[f], copy, b.size);
        }
        free(copy);
        free(b.bytes);
    }
    un_trimesh_free(ctx, &cube);
    check_context_end(ctx);
}

/* ---- allocation ---- */

static un_status load_file(un_context *ctx, void *arg)
{
    (void)arg;
    un_trimesh m;
    un_status status = un_trimesh_load(ctx, path, &m);
    un_trimesh_free(ctx, &m);
    return status;
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_trimesh ball = mesh_ball(ctx, 20, 0.1);
    for (int f = 0; f < FORMATS; f++) {
        text_buffer b = encode(&ball, (format)f);
        write_bytes(FORMAT_NAME[f], b.bytes, b.size);
        check_allocation_failures(load_file, NULL, 100);
        unlink(path);
        free(b.bytes);
    }
    un_trimesh_free(ctx, &ball);
    check_context_end(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_correctly_rounded),
        cmocka_unit_test(good_files),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(no_files_at_all),
        cmocka_unit_test(bad_binary_stl),
        cmocka_unit_test(truncated_anywhere),
        cmocka_unit_test(damaged_anywhere),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
