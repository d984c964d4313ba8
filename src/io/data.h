/* What datasets are made of in C: pictures, their transforms, and sources of items that threads gather into batches.
 *
 * Idea: a source is a list of fields, each of which can write its item i into given memory. Random numbers come from
 * Philox by (key, item), so an item is the same whichever thread makes it, and when. Items count from 0 here.
 * Invariant: nothing here touches Lua; threads make no tensors, and release some only with an abandoned loader, which the last of
 * them frees; each thread has its own ty_ctx (for error texts) and ty_canvas. */
#ifndef TY_DATA_H
#define TY_DATA_H
#include "tycho.h"

/* ---- pictures ---- */

#define TY_PIXELS_MOST ((int64_t)1 << 28)   /* a picture whose header claims more pixels isn't decoded */

/* c planes of h x w values in anyone's memory. bytes: uint8, 0..255 standing for 0..1; else floats. own: the memory is the canvas's,
 * dense, and may be changed. normal: value v of plane k stands for (v - mean[k]) / std[k]. */
typedef struct {
  const void *p;
  bool bytes, own, normal;
  int c, h, w;
  int64_t sc, sh, sw;      /* strides of planes, rows and columns, in values */
  float mean[4], std[4];
} ty_picture;

/* A thread's scratch memory for pictures; all zeroes at first. */
typedef struct {
  float *plane[3];
  size_t room[3];
  int next;
  uint8_t *pixels;
  size_t pixels_room;
  void *jpeg;
} ty_canvas;
void ty_canvas_free(ty_canvas *s);
float *ty_canvas_floats(ty_ctx *ctx, ty_canvas *s, int64_t n);      /* valid for two more calls; NULL: out of memory */
/* Turns *p into dense floats in the canvas, with `normal` carried out. */
ty_status ty_picture_own(ty_ctx *ctx, ty_picture *p, ty_canvas *s);
void ty_picture_write(const ty_picture *p, void *to, ty_dtype d);     /* c x h x w elements: float32, float16, bfloat16 or float64 */

/* Decodes a JPEG or PNG file into 3 planes of bytes; gray: into 1. The size is checked before memory is taken. */
ty_status ty_picture_read(ty_ctx *ctx, const char *path, bool gray, ty_canvas *s, ty_picture *out);

/* ---- random numbers ---- */

typedef struct { uint64_t key, block; uint32_t word[4]; int left; } ty_draws;
/* One key for a loader's seed and epoch (splitmix64). */
static inline uint64_t ty_key(uint64_t seed, uint64_t epoch) {
  uint64_t z = seed * 0x9E3779B97F4A7C15u + epoch + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
static inline ty_draws ty_draws_of(uint64_t key, int64_t item) { return (ty_draws){.key = key, .block = (uint64_t)item << 16}; }

/* ---- transforms ---- */

#define TY_TRANSFORM_ARGS 24
typedef struct { int kind; double v[TY_TRANSFORM_ARGS]; } ty_transform;
/* The step of this name, with the numbers that lua/tycho/data/transform_steps.lua tells of; checks them. */
ty_status ty_transform_make(ty_ctx *ctx, const char *name, const double *v, int n, ty_transform *out);
typedef struct { int n; ty_dtype dtype; ty_transform step[]; } ty_pipeline;
ty_status ty_pipeline_run(ty_ctx *ctx, const ty_pipeline *t, ty_picture *p, ty_draws *d, ty_canvas *s);
/* c, h, w become the size of the pipeline's result; false: it depends on the picture. known: whether h and w are given. */
bool ty_pipeline_size(const ty_pipeline *t, int *c, int *h, int *w, bool known);

/* pictures' geometry and colours (warp.c, colour.c): change *p */
#define TY_BORDERS(X) X(BORDER_FILL, "constant") X(BORDER_EDGE, "edge") X(BORDER_REFLECT, "reflect")
typedef enum { TY_BORDERS(TY_AS_NUMBER) TY_NBORDER } ty_border;
/* What is outside: a value for all planes, or one for each. */
typedef struct { int n; float v[4]; } ty_fill;
static inline float ty_fill_of(const ty_fill *fill, int plane) { return fill->v[fill->n == 1 ? 0 : plane]; }
ty_status ty_crop(ty_ctx *ctx, ty_picture *p, int y, int x, int h, int w, ty_border border, const ty_fill *fill, ty_canvas *s);
/* AutoAugment's policies, named after the dataset they were found on (policies.h) */
#define TY_POLICIES(X) X(IMAGENET, "imagenet") X(CIFAR10, "cifar10") X(SVHN, "svhn")
enum { TY_POLICIES(TY_AS_NUMBER) TY_NPOLICY };
/* Between 2 (Keys' cubic: 4) neighbours along each axis, or as many times more as the picture shrinks with antialias; a cubic of bytes is
 * kept in 0..1. */
#define TY_RESAMPLINGS(X) X(BILINEAR, "bilinear") X(NEAREST, "nearest") X(BICUBIC, "bicubic")
typedef enum { TY_RESAMPLINGS(TY_AS_NUMBER) TY_NRESAMPLING } ty_resampling;
ty_status ty_resize(ty_ctx *ctx, ty_picture *p, int h, int w, ty_resampling how, bool antialias, ty_canvas *s);
/* How ty_warp reads the picture: the nearest pixel, or between four. */
typedef struct { bool nearest; ty_fill fill; } ty_sampler;
/* Angles in degrees; tx, ty in pixels. */
typedef struct { double degrees, tx, ty, scale, shear_x, shear_y; } ty_affine;
/* Pixel (x, y) of the result comes from ((m0 x + m1 y + m2) / d, (m3 x + m4 y + m5) / d), d = m6 x + m7 y + 1, relative to (cx, cy).
 * The result has h x w pixels about the picture's middle. */
ty_status ty_warp(ty_ctx *ctx, ty_picture *p, const double m[8], double cx, double cy, int h, int w, const ty_sampler *how, ty_canvas *s);
/* with a Gaussian kernel of wide x tall; the borders reflect */
ty_status ty_blur(ty_ctx *ctx, ty_picture *p, int wide, int tall, double sigma_x, double sigma_y, ty_canvas *s);
void ty_inverse_affine(ty_affine a, double m[8]);
/* from, to: four points x, y, ... of the picture and of the result; false: there is no such map */
bool ty_inverse_perspective(const double from[8], const double to[8], double m[8]);
#define TY_COLOURS(X) X(BRIGHTNESS, "brightness") X(CONTRAST, "contrast") X(SATURATION, "saturation") X(HUE, "hue") \
  X(SHARPNESS, "sharpness") X(POSTERIZE, "posterize") X(SOLARIZE, "solarize") X(AUTOCONTRAST, "autocontrast") X(EQUALIZE, "equalize") \
  X(INVERT, "invert") X(GRAYSCALE, "grayscale")
typedef enum { TY_COLOURS(TY_AS_NUMBER) } ty_colour;
ty_status ty_recolour(ty_ctx *ctx, ty_picture *p, ty_colour what, float by, ty_canvas *s);

/* ---- sources ---- */

#define TY_FIELDS 8
typedef enum { TY_ROWS, TY_IMAGES, TY_FILES, TY_WINDOWS } ty_field_kind;
typedef struct {
  ty_field_kind kind;
  ty_tensor *t;            /* ROWS: item i is t[i]. IMAGES: uint8 (N, H, W) or (N, C, H, W). WINDOWS: int64, 1 dim */
  char **path;             /* FILES: n of them */
  bool gray;
  int64_t length, step, from;  /* WINDOWS: item i is t[from + i * step ...] of length */
  struct ty_blob *raw;     /* WINDOWS without t: ids that count from 0, of width bytes (2: uint16, 4: int32); items count them from 1 */
  int width;
  ty_pipeline *pipe;       /* pictures: never NULL */
} ty_field;

/* A source has fields of its own, or is a concatenation of parts and has their fields. */
typedef struct ty_source ty_source;
typedef struct {
  ty_source *of;
  int64_t end;             /* one past the part's last item, counted in the whole; it begins at the end of the part before */
  int64_t *at;             /* the part's items as items of `of`; NULL: all of them */
} ty_source_part;
#define TY_SOURCE_DEPTH 10000     /* functions below call themselves for parts */
struct ty_source { atomic_int refs; int64_t n; int nfield; ty_field field[TY_FIELDS]; int depth, npart; ty_source_part part[]; };
ty_source *ty_source_new(ty_ctx *ctx, int64_t n, int nparts);          /* NULL: out of memory */
void ty_source_release(ty_source *s);
/* Whether all items of field k have one shape, which *item becomes. */
bool ty_field_meta(const ty_source *s, int k, ty_meta *item);
/* Checks that the parts' items fit into one batch; sets nfield. */
ty_status ty_source_join(ty_ctx *ctx, ty_source *s);

/* A batch to be made: its items, and for each field memory for count items in a row. Where a field's shape depends on the picture, to[k]
 * is NULL at first: the first item decides, to[k] is then malloc'd (made[k]) and meta[k] is the shape. */
typedef struct ty_batch {
  int64_t count;
  int64_t *item;
  uint64_t key;
  int64_t first;           /* the first item's place in the epoch: random numbers differ where an item comes twice */
  void *to[TY_FIELDS];
  ty_meta meta[TY_FIELDS];
  bool made[TY_FIELDS];
  _Atomic int64_t at;      /* the item being made */
  ty_status status;
  char err[TY_ERRLEN];
  atomic_int done;
  int worker;
  struct ty_batch *next;
} ty_batch;
/* Sets status and err. stop: NULL, or a flag: true ends the work early. */
void ty_source_fill(const ty_source *s, ty_batch *b, ty_ctx *ctx, ty_canvas *canvas, const atomic_bool *stop);

/* ---- threads that fill batches (loader.c) ---- */

typedef struct ty_loader ty_loader;
ty_status ty_loader_start(ty_ctx *ctx, ty_source *s, int workers, ty_loader **out);
void ty_loader_submit(ty_loader *l, ty_batch *b);        /* batches are taken in the order of submission */
ty_batch *ty_loader_take(ty_loader *l, double seconds);  /* the oldest, once it is done; NULL: not within this time, or there is none */
/* Whether this is a forked child of the process that started l: it has no threads, and l can only be stopped. */
bool ty_loader_forked(const ty_loader *l);
/* How far the oldest batch is: the worker that makes it (0: none yet), and the item that is being made, from 0. */
void ty_loader_stands(ty_loader *l, int *worker, int64_t *item);
ty_batch *ty_loader_stop(ty_loader *l);                  /* ends the threads; returns the list of batches not taken */

/* ---- readers ---- */

/* Records of head label bytes and c*h*w pixel bytes, as in CIFAR's binary files: uint8 of n x head and n x c x h x w. */
ty_status ty_records_read(ty_ctx *ctx, const char *path, int head, const int *chw, ty_tensor **labels, ty_tensor **images);
/* A table of numbers: float64 of rows x columns. names: NULL, or *names becomes the first line's fields, each ended by a
   newline (to be freed); NULL without header. */
ty_status ty_csv_read(ty_ctx *ctx, const char *path, char separator, bool header, ty_tensor **out, char **names);
#endif
