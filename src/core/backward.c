/* The backward pass over the tape.
 *
 * Idea: a pass counts the recorded uses of each node that can be reached from the roots. It then runs, newest first, the nodes
 * all of whose uses have run; each hands gradients to its operands. A leaf has an entry as nodes do: it "runs" when its gradient is
 * complete. Invariants: a pass keeps its own tables, so that rules may run other passes; broadcasting is undone here and
 * nowhere else; without retain_graph a node's saved tensors go as soon as it has run. */
#include <stdlib.h>
#include "program.h"
#include "shape.h"
#include "table.h"

typedef struct {
  uint64_t key;            /* the node's or the leaf's address */
  ty_node *node;
  ty_tensor *leaf;
  int uses;                /* uses that have not run yet */
  int grads;               /* place of its first result's gradient in pass.grad */
  bool needed;             /* its gradient leads to one that is asked for */
} entry;

/* The written part of a gradient that is put together from slices: indices first .. end - 1 of dim. dim < 0: all is written. */
typedef struct { int dim; int64_t first, end; } range;

typedef struct {
  ty_ctx *ctx;
  entry *e;
  int n, cap;
  ty_map map;
  ty_tensor **grad;
  range *written;          /* for each gradient */
  int ngrad, grad_cap, written_cap;
  int *heap, nheap;
  bool scaled;             /* a loss that a GradScaler multiplied is among the nodes */
  struct { const ty_backend *gpu; void *stream; } joined[8];     /* streams that the current ones wait for already */
  int njoined;
} pass;

/* The key of the entry of t: its node, or a leaf itself. */
static const void *key_of(const ty_tensor *t) { return t->node ? (const void *)t->node : (const void *)t; }
static int find(const pass *p, const void *key) { return ty_map_find(&p->map, (uintptr_t)key, p->e, sizeof(entry)); }
/* -1: the edge leads nowhere, or to what is not in the pass */
static int find_edge(const pass *p, const ty_edge *e) {
  return e->node ? find(p, e->node) : e->leaf ? find(p, e->leaf) : -1;
}

/* The entry of a node or leaf, made if it is new. -1: out of memory. */
static int enter(pass *p, ty_node *node, ty_tensor *leaf) {
  const void *key = node ? (void *)node : (void *)leaf;
  int i = find(p, key), nout = node ? node->nout : 1;
  if (i >= 0) return i;
  if (!ty_grow(&p->e, p->n + 1, &p->cap, sizeof(entry)) ||
      !ty_grow(&p->grad, p->ngrad + nout, &p->grad_cap, sizeof(ty_tensor *)) ||
      !ty_grow(&p->written, p->ngrad + nout, &p->written_cap, sizeof(range)))
    return -1;
  p->e[p->n] = (entry){(uintptr_t)key, node, leaf, 0, p->ngrad, true};
  if (!ty_map_add(&p->map, p->e, p->n + 1, sizeof(entry))) return -1;
  ty_node_retain(node);                    /* hooks may drop the last handle */
  ty_retain(leaf);
  for (int k = 0; k < nout; k++, p->ngrad++) {
    p->grad[p->ngrad] = NULL;
    p->written[p->ngrad].dim = -1;
  }
  return p->n++;
}

static int enter_edge(pass *p, const ty_edge *e) { return e->node ? enter(p, e->node, NULL) : e->leaf ? enter(p, NULL, e->leaf) : -2; }

/* ---- the ready heap: newest node first ---- */

static uint64_t seq_of(const pass *p, int i) { return p->e[i].node ? p->e[i].node->seq : UINT64_MAX; }

static void heap_push(pass *p, int x) {
  int i = p->nheap++;
  while (i > 0 && seq_of(p, p->heap[(i - 1) / 2]) < seq_of(p, x)) { p->heap[i] = p->heap[(i - 1) / 2]; i = (i - 1) / 2; }
  p->heap[i] = x;
}

static int heap_pop(pass *p) {
  int top = p->heap[0], x = p->heap[--p->nheap], i = 0;
  for (int k; (k = 2 * i + 1) < p->nheap; i = k) {
    if (k + 1 < p->nheap && seq_of(p, p->heap[k + 1]) > seq_of(p, p->heap[k])) k++;
    if (seq_of(p, p->heap[k]) <= seq_of(p, x)) break;
    p->heap[i] = p->heap[k];
  }
  p->heap[i] = x;
  return top;
}

/* ---- gradients ---- */

/* Moves *g to its operand's device: that may be a number on the CPU beside a GPU's tensors. Consumes *g. */
static ty_status bring_back(ty_ctx *ctx, ty_tensor **g, const ty_meta *m) {
  ty_tensor *y;
  ty_attr at[2] = {[TY_AT_to_device_device] = {.set = true, .i = m->device}};
  if (ty_device_of(*g) == ty_devices[m->device]) return TY_OK;
  TY_TRY(ty_call_op2(ctx, TY_OP_to_device, ty_operand_tensor(*g), (ty_operand){0}, at, NULL, &y));
  ty_release(*g);
  *g = y;
  return TY_OK;
}

/* Sums *g over the dims along which its operand was broadcast, casts it to the operand's dtype, and lays a leaf's gradient out as the
   leaf, which optimizers want. Consumes *g. */
static ty_status unbroadcast(ty_ctx *ctx, ty_tensor **g, const ty_meta *m, const ty_tensor *leaf, const char *who) {
  ty_tensor *x = *g, *y;
  int lead = x->ndim - m->ndim;          /* < 0: an assigned value had dims of 1 before x's dims */
  bool same = lead == 0, fits = true;
  for (int i = 0; i < m->ndim && fits; i++) {
    int64_t have = i + lead < 0 ? 1 : x->shape[i + lead];
    if (have != m->shape[i]) { same = false; fits = i + lead >= 0 && m->shape[i] == 1; }
  }
  if (!fits)
    return ty_error(ctx, "backward: the gradient rule of '%s' gave shape %s for an operand of shape %s", who,
      ty_shape_of(x), ty_shape_text(m->shape, m->ndim));
  if (!same) {
    ty_attr at[TY_MAXATTR] = {{.set = true, .n = 0}, {.set = true, .i = 1}};
    for (int i = 0; i < x->ndim; i++)
      if (i < lead || (m->shape[i - lead] == 1 && x->shape[i] != 1)) at[TY_AT_sum_dim].v[at[TY_AT_sum_dim].n++] = i;
    if (at[TY_AT_sum_dim].n) {
      TY_TRY(ty_call_op2(ctx, TY_OP_sum, ty_operand_tensor(x), (ty_operand){0}, at, NULL, &y));
      ty_release(x);
      *g = x = y;
    }
    TY_TRY(ty_view(ctx, x, m->ndim, m->shape, &y));
    ty_release(x);
    *g = x = y;
  }
  const bool turned = leaf && ty_is_contiguous(leaf) && !ty_is_contiguous(x) && ty_is_channels_last(x);
  if (x->dtype != m->dtype || turned) {
    ty_attr at[2] = {{.set = true, .i = m->dtype}, {.set = true, .i = turned ? TY_CONTIGUOUS : TY_PRESERVE}};
    TY_TRY(ty_call_op2(ctx, TY_OP_cast, ty_operand_tensor(x), (ty_operand){0}, at, NULL, &y));
    ty_release(x);
    *g = y;
  }
  return TY_OK;
}

static ty_status zero_indices(ty_ctx *ctx, const ty_tensor *t, int dim, int64_t first, int64_t end) {
  if (first >= end) return TY_OK;
  ty_tensor *v = ty_alias(t);
  if (!v) return ty_no_memory(ctx, "backward");
  v->offset += first * v->stride[dim];
  v->shape[dim] = end - first;
  const ty_status s = ty_fill_into(ctx, v, ty_operand_float(0));
  ty_release(v);
  return s;
}

/* Writes zeros where no slice has written the gradient in slot. */
static ty_status complete(pass *p, int slot) {
  const range r = p->written[slot];
  if (r.dim < 0) return TY_OK;
  ty_tensor *t = p->grad[slot];
  p->written[slot].dim = -1;
  TY_TRY(zero_indices(p->ctx, t, r.dim, 0, r.first));
  return zero_indices(p->ctx, t, r.dim, r.end, t->shape[r.dim]);
}

/* The gradient in slot += g; takes over g's reference. */
static ty_status accumulate(pass *p, int slot, ty_tensor *g) {
  ty_ctx *ctx = p->ctx;
  ty_tensor *old = p->grad[slot], *sum;
  if (!old) { p->grad[slot] = g; return TY_OK; }
  bool in_place = !ctx->grad_enabled && !old->copied && ty_is_sole(old) && !ty_overlaps_itself(old);
  ty_status s = complete(p, slot);
  if (s == TY_OK) s = ty_call_op2(ctx, TY_OP_add, ty_operand_tensor(old), ty_operand_tensor(g), NULL, in_place ? old : NULL, &sum);
  ty_release(g);
  if (s != TY_OK) return s;
  ty_release(old);
  p->grad[slot] = sum;
  return TY_OK;
}

/* The indices of its operand's dim that a slice or select took; dim < 0: with gaps between them. */
static range taken_by(const ty_node *n) {
  const int64_t first = n->at[TY_AT_select_index].i;
  const bool slice = n->op->id == TY_OP_slice, dense = !slice || n->at[TY_AT_slice_step].i == 1;
  return (range){dense ? (int)n->at[TY_AT_slice_dim].i : -1, first, first + (slice ? n->at[TY_AT_slice_last].i : 1)};
}

/* A view of the part of whole, a tensor of the operand's shape, that a slice or select took. */
static ty_tensor *part_of(const ty_node *n, const ty_tensor *whole) {
  ty_tensor *v = ty_alias(whole);
  if (!v) return NULL;
  int d = (int)n->at[TY_AT_slice_dim].i;
  v->offset += n->at[TY_AT_select_index].i * v->stride[d];
  if (n->op->id == TY_OP_slice) {
    v->shape[d] = n->at[TY_AT_slice_last].i;
    v->stride[d] *= TY_MIN(n->at[TY_AT_slice_step].i, TY_MAX(whole->shape[d], 1));      /* as in ty_infer_slice */
    return v;
  }
  size_t behind = sizeof(int64_t) * (size_t)(v->ndim - 1 - d);
  memmove(v->shape + d, v->shape + d + 1, behind);
  memmove(v->stride + d, v->stride + d + 1, behind);
  v->ndim--;
  return v;
}

/* If r borders on what is written, adds r to that; else false. Parts of chunk() and steps of a loop over time do border. */
static bool extends(range *written, range r) {
  if (r.dim < 0 || r.dim != written->dim) return false;
  if (r.end == written->first) written->first = r.first;
  else if (r.first == written->end) written->end = r.end;
  else return false;
  return true;
}

/* Writes or adds the gradient g of a slice or select straight into that part of the operand's gradient, so that many parts of a tensor
 * cost no more than the tensor. False: nothing was done, and the gradient rule has to run. */
static bool add_to_part(pass *p, const ty_node *n, ty_tensor *g, ty_status *s) {
  ty_ctx *ctx = p->ctx;
  if (ctx->grad_enabled || !n->op || (n->op->id != TY_OP_slice && n->op->id != TY_OP_select)) return false;
  const ty_meta *m = &n->meta[0], *o = &n->meta[1];
  const ty_edge *e = &n->edge[0];
  const int slot = p->e[find_edge(p, e)].grads + (e->node ? e->out : 0);
  const range r = taken_by(n);
  ty_tensor *whole = p->grad[slot], *sum = NULL;
  if (g->dtype != m->dtype || !TY_SAME_SHAPE(g, o)) return false;
  bool fits = !whole || (whole->dtype == m->dtype && TY_SAME_SHAPE(whole, m));   /* a leaf may have been given other data */
  if (!fits || (whole && (!ty_is_sole(whole) || ty_overlaps_itself(whole)))) return false;
  const bool blank = !whole || extends(&p->written[slot], r);
  if (!whole) {
    ty_meta lay = *m;
    if (e->node && g->own_layout && g->ndim == m->ndim && ty_is_dense(g) && !ty_is_contiguous(g)) ty_keep_order(&lay, g);
    *s = ty_empty(ctx, g->storage->backend, &lay, &whole);
    if (*s != TY_OK) return true;
    p->grad[slot] = whole;
    p->written[slot] = r.dim < 0 ? (range){0} : r;
  }
  if (!blank || r.dim < 0) *s = complete(p, slot);
  if (*s != TY_OK) return true;
  ty_tensor *part = part_of(n, whole);
  if (!part) *s = ty_no_memory(ctx, "backward");
  else if (blank) *s = ty_copy_into(ctx, part, g);
  else *s = ty_call_op2(ctx, TY_OP_add, ty_operand_tensor(part), ty_operand_tensor(g), NULL, part, &sum);
  ty_release(sum);
  ty_release(part);
  return true;
}

/* leaf.grad += g; takes over g's reference. */
static ty_status finish_leaf(ty_ctx *ctx, ty_tensor *leaf, ty_tensor *g, bool scaled) {
  ty_tensor *const before = leaf->grad;
  const bool was_scaled = before && before->scaled;
  ty_tensor *sum = NULL;
  if (g->dtype != leaf->dtype) {           /* the leaf was converted after the graph was made */
    ty_status s = ty_cast(ctx, g, leaf->dtype, &sum);
    ty_release(g);
    if (s != TY_OK) return s;
    g = sum;
    sum = NULL;
  }
  if (leaf->grad) {
    leaf->grad->scaled = false;            /* set below */
    ty_status s = ty_call_op2(ctx, TY_OP_add, ty_operand_tensor(leaf->grad), ty_operand_tensor(g), NULL,
      ctx->grad_enabled ? NULL : leaf->grad, &sum);
    ty_release(g);
    if (s != TY_OK) { leaf->grad->scaled = was_scaled; return s; }
  } else if (ctx->grad_enabled ||
      ((ty_is_sole(g) || ty_program_gives(g)) && (ty_is_contiguous(g) || (ty_is_channels_last(g) && ty_is_channels_last(leaf)))))
    sum = g;
  else {                               /* others may hold g's memory: .grad gets its own */
    ty_attr at = {.set = true, .i = TY_CONTIGUOUS};
    ty_status s = ty_call_op2(ctx, TY_OP_clone, ty_operand_tensor(g), (ty_operand){0}, &at, NULL, &sum);
    ty_release(g);
    if (s != TY_OK) return s;
  }
  leaf->grad = sum;
  sum->scaled = scaled || was_scaled;
  ty_status s = ctx->program ? ty_program_leaf(ctx, leaf, before) : TY_OK;
  ty_release(before);
  return s;
}

static ty_status run_node(pass *p, int i, bool retain) {
  ty_ctx *ctx = p->ctx;
  ty_node *n = p->e[i].node;
  ty_tensor *gin_small[8] = {0}, **gin = gin_small;
  bool needs_small[8], *needs = needs_small, any = false;
  ty_status s = TY_OK;
  if (n->nin > 8) {
    gin = ty_malloc((sizeof(ty_tensor *) + sizeof(bool)) * (size_t)n->nin);
    if (!gin) return ty_no_memory(ctx, "backward");
    memset(gin, 0, sizeof(ty_tensor *) * (size_t)n->nin);
    needs = (bool *)(gin + n->nin);
  }
  for (int k = 0; k < n->nin; k++) {
    const int t = find_edge(p, &n->edge[k]);
    needs[k] = t >= 0 && p->e[t].needed;
    any = any || needs[k];
  }
  ty_tensor **gout = &p->grad[p->e[i].grads];
  bool have = false;
  for (int k = 0; k < n->nout; k++) have = have || gout[k];
  if (any && have) {
    if (n->done)
      s = ty_error(ctx,
        "backward: this graph has been used by an earlier backward and freed; pass retain_graph=true to that one");
    if (s == TY_OK && !n->done && !add_to_part(p, n, gout[0], &s)) {
      ctx->scaled = p->scaled && n->internal;          /* passes in users' functions have losses of their own */
      s = !n->op && !n->internal && ctx->program ? ty_program_rule(ctx, n, gout, needs, gin) : ctx->host->rule(ctx, n, gout, needs, gin);
      ctx->scaled = false;
    }
    if (!retain && s == TY_OK) ty_node_finish(n);
  }
  for (int k = 0; k < n->nout; k++) { ty_release(gout[k]); gout[k] = NULL; }
  for (int k = 0; k < n->nin; k++) {
    const int t = needs[k] ? find_edge(p, &n->edge[k]) : -1;
    if (s == TY_OK && gin[k] && t >= 0) {
      s = unbroadcast(ctx, &gin[k], &n->meta[k], n->edge[k].leaf, n->op ? n->op->name : "Function");
      if (s == TY_OK && n->op && n->nin > 1) s = bring_back(ctx, &gin[k], &n->meta[k]);
      if (s == TY_OK) {
        int slot = p->e[t].grads + (n->edge[k].node ? n->edge[k].out : 0);
        s = accumulate(p, slot, gin[k]);
        gin[k] = NULL;
      }
    }
    ty_release(gin[k]);
    if (t >= 0 && --p->e[t].uses == 0) heap_push(p, t);
  }
  if (gin != gin_small) ty_free(gin);
  return s;
}

static int by_seq(const void *a, const void *b) {
  const entry *const *x = a, *const *y = b;
  uint64_t s = (*x)->node ? (*x)->node->seq : 0, t = (*y)->node ? (*y)->node->seq : 0;
  return s < t ? -1 : s > t;
}

/* Marks as needed what lies between the roots and the inputs; nothing else runs. */
static ty_status prune(pass *p, ty_tensor **inputs, int ninput) {
  entry **order = ty_malloc(sizeof(entry *) * (size_t)TY_MAX(p->n, 1));
  if (!order) return ty_no_memory(p->ctx, "backward");
  for (int i = 0; i < p->n; i++) { p->e[i].needed = false; order[i] = &p->e[i]; }
  for (int k = 0; k < ninput; k++) {
    int i = find(p, key_of(inputs[k]));
    if (i >= 0) p->e[i].needed = true;
  }
  qsort(order, (size_t)p->n, sizeof *order, by_seq);
  for (int i = 0; i < p->n; i++) {
    ty_node *n = order[i]->node;
    for (int k = 0; n && k < n->nin && !order[i]->needed; k++) {
      const int t = find_edge(p, &n->edge[k]);
      if (t >= 0 && p->e[t].needed) order[i]->needed = true;
    }
  }
  ty_free(order);
  return TY_OK;
}

/* Makes the current stream, which the pass runs on, wait for what the stream of n has been given. */
static void join_stream(pass *p, const ty_node *n) {
  if (!n->gpu || n->stream == p->ctx->stream[n->gpu->gpu]) return;
  for (int i = 0; i < p->njoined; i++)
    if (p->joined[i].gpu == n->gpu && p->joined[i].stream == n->stream) return;
  n->gpu->join(p->ctx, n->gpu, n->stream);
  if (p->njoined == 8) return;             /* a ninth stream is not noted, so it is waited for each time */
  p->joined[p->njoined].gpu = n->gpu;
  p->joined[p->njoined++].stream = n->stream;
}

/* Enters every node that can be reached from the roots, and counts the uses along needed edges. */
static ty_status explore(pass *p, ty_tensor **roots, int nroot, ty_tensor **inputs, int ninput) {
  for (int k = 0; k < nroot; k++) {
    ty_edge e = {roots[k]->node, roots[k]->out, roots[k]->node ? NULL : roots[k]};
    if (enter_edge(p, &e) < 0) return ty_no_memory(p->ctx, "backward");
  }
  for (int i = 0; i < p->n; i++) {       /* enter_edge appends entries: breadth first, without recursion */
    ty_node *n = p->e[i].node;
    p->scaled = p->scaled || (n && n->op && n->op->id == TY_OP_amp_scale);
    if (n) join_stream(p, n);
    for (int k = 0; n && k < n->nin; k++)
      if (enter_edge(p, &n->edge[k]) == -1) return ty_no_memory(p->ctx, "backward");
  }
  if (inputs) TY_TRY(prune(p, inputs, ninput));
  for (int i = 0; i < p->n; i++) {
    ty_node *n = p->e[i].node;
    for (int k = 0; n && p->e[i].needed && k < n->nin; k++) {
      int t = enter_edge(p, &n->edge[k]);
      if (t >= 0 && p->e[t].needed) p->e[t].uses++;
    }
  }
  p->heap = ty_malloc(sizeof(int) * (size_t)p->n);
  return p->heap ? TY_OK : ty_no_memory(p->ctx, "backward");
}

static ty_status seed(pass *p, ty_tensor *root, ty_tensor *grad) {
  ty_tensor *g;
  ty_ctx *ctx = p->ctx;
  if (grad) {
    if (!TY_SAME_SHAPE(grad, root))
      return ty_error(ctx, "backward: the gradient has shape %s; it must be %s as the output's", ty_shape_of(grad), ty_shape_of(root));
    if (ty_device_of(grad) != ty_device_of(root))
      return ty_error(ctx, "backward: the gradient is on %s; it must be on %s as the output", ty_device_of(grad)->name,
        ty_device_of(root)->name);
    TY_TRY(ty_cast(ctx, grad, root->dtype, &g));
    if (ctx->grad_enabled && g != grad) {
      ty_release(g);
      return ty_error(ctx, "backward: the gradient has dtype %s; it must be %s as the output's",
        ty_dtype_names[grad->dtype], ty_dtype_names[root->dtype]);
    }
  } else {
    if (ty_numel(root) != 1)
      return ty_error(ctx, "backward: without a gradient the output must have one element, got shape %s", ty_shape_of(root));
    ty_meta m;
    ty_meta_of(root, &m);
    TY_TRY(ty_empty(ctx, root->storage->backend, &m, &g));
    ty_status s = ty_fill_into(ctx, g, ty_operand_float(1));
    if (s != TY_OK) { ty_release(g); return s; }
  }
  int i = find(p, key_of(root));
  return accumulate(p, p->e[i].grads + (root->node ? root->out : 0), g);
}

static ty_status hooks(pass *p, int i) {
  ty_node *n = p->e[i].node;
  for (int k = 0; k < (n ? n->nout : 1); k++) {
    const ty_hooks *h = n ? n->hook[k] : p->e[i].leaf->hooks;
    ty_tensor **g = &p->grad[p->e[i].grads + k];
    if (h && h->idle) continue;
    if (h && *g && p->ctx->program) TY_TRY(ty_program_settle(p->ctx, "a gradient has a hook"));
    if (h && *g) TY_TRY(p->ctx->host->hook(p->ctx, h->key, g, NULL));
  }
  return TY_OK;
}

static bool is_input(const pass *p, int i, ty_tensor **inputs, int n) {
  while (n-- > 0)
    if (p->e[i].key == (uintptr_t)key_of(inputs[n])) return true;
  return false;
}

/* Whether n stands for a result of a compiled call, whose graph has run within the call. */
static bool keeps_no_graph(const ty_node *n) { return n && n->done && !n->nin; }

static ty_status drive(pass *p, const ty_backward_call *b) {
  const ty_backward_opts o = b->o;
  TY_TRY(explore(p, b->root, b->nroot, b->input, b->ninput));
  for (int i = 0; !b->input && i < p->n; i++)
    if (keeps_no_graph(p->e[i].node))
      return ty_error(p->ctx,
        "backward: a part of the output's graph was made within a compiled function, which keeps no graph: run backward "
        "there too, or detach() it");
  for (int k = 0; k < b->nroot; k++) TY_TRY(seed(p, b->root[k], b->grad ? b->grad[k] : NULL));
  for (int i = 0; i < p->n; i++)
    if (p->e[i].needed && p->e[i].uses == 0) heap_push(p, i);
  while (p->nheap) {
    int i = heap_pop(p);
    ty_tensor **g = &p->grad[p->e[i].grads];
    for (int k = 0; k < (p->e[i].node ? p->e[i].node->nout : 1); k++) TY_TRY(complete(p, p->e[i].grads + k));
    if (!o.within || !is_input(p, i, b->input, b->ninput)) TY_TRY(hooks(p, i));
    for (int k = 0; k < b->ninput; k++)
      if (is_input(p, i, &b->input[k], 1))
        b->result[k] = ty_retain(g[b->input[k]->node ? b->input[k]->out : 0]);
    if (p->e[i].node) TY_TRY(run_node(p, i, o.retain_graph));
    else if ((!b->input || o.accumulate) && g[0] && p->e[i].leaf->requires_grad) {         /* it may have been frozen since */
      ty_tensor *whole = g[0];
      ty_tensor *const leaf = p->e[i].leaf;
      g[0] = NULL;
      TY_TRY(finish_leaf(p->ctx, leaf, whole, p->scaled));
      if (o.create_graph && leaf->grad->node) TY_TRY(p->ctx->host->history(p->ctx, leaf->grad));
      if (leaf->hooks) TY_TRY(p->ctx->host->hook(p->ctx, leaf->hooks->key, NULL, leaf));
    }
  }
  return TY_OK;
}

/* Holds (on) or releases the caller's tensors, whose handles may go while rules and hooks run. */
static void hold(ty_tensor **roots, ty_tensor **grads, int nroot, ty_tensor **inputs, int ninput, bool on) {
  for (int k = 0; k < nroot; k++) {
    if (on) { ty_retain(roots[k]); if (grads) ty_retain(grads[k]); }
    else { ty_release(roots[k]); if (grads) ty_release(grads[k]); }
  }
  for (int k = 0; k < ninput; k++) { if (on) ty_retain(inputs[k]); else ty_release(inputs[k]); }
}

static void forget(pass *p) {
  for (int i = 0; i < p->ngrad; i++) ty_release(p->grad[i]);
  for (int i = 0; i < p->n; i++) { ty_node_release(p->e[i].node); ty_release(p->e[i].leaf); }
  ty_free(p->e);
  ty_free(p->map.slot);
  ty_free(p->grad);
  ty_free(p->written);
  ty_free(p->heap);
}

ty_pass_modes ty_enter_pass(ty_ctx *ctx, ty_backward_opts o) {
  const ty_pass_modes was = {ctx->grad_enabled, ctx->scaled, ctx->retains, {ctx->autocast[0], ctx->autocast[1]}};
  ctx->grad_enabled = o.create_graph;
  ctx->retains = o.retain_graph || o.create_graph;
  ctx->autocast[0] = ctx->autocast[1] = 0;               /* gradients have the dtypes of the forward pass */
  ctx->scaled = false;                     /* run_node sets it for some of the library's rules */
  return was;
}

void ty_leave_pass(ty_ctx *ctx, ty_pass_modes was) {
  ctx->grad_enabled = was.grad_enabled;
  ctx->retains = was.retains;
  ctx->scaled = was.scaled;
  memcpy(ctx->autocast, was.autocast, sizeof was.autocast);
}

static ty_status backward_now(ty_ctx *ctx, const ty_backward_call *b) {
  for (int k = 0; k < b->nroot; k++) {
    TY_TRY(ty_history(ctx, b->root[k]));
    if (keeps_no_graph(b->root[k]->node))
      return ty_error(ctx,
        "backward: the output was made within a compiled function, which keeps no graph: run backward there too");
    if (!ty_needs_grad(b->root[k]))
      return ty_error(ctx,
        "backward: the output doesn't require grad: nothing it was computed from does, or it was computed under no_grad");
  }
  for (int k = 0; k < b->ninput; k++) {
    TY_TRY(ty_history(ctx, b->input[k]));
    if (!ty_needs_grad(b->input[k])) return ty_error(ctx, "grad: input %d doesn't require grad", k + 1);
    b->result[k] = NULL;
  }
  const ty_pass_modes was = ty_enter_pass(ctx, b->o);
  hold(b->root, b->grad, b->nroot, b->input, b->ninput, true);
  pass p = {.ctx = ctx, .scaled = was.scaled};
  ty_status s = drive(&p, b);
  ty_leave_pass(ctx, was);
  if (s != TY_OK)
    for (int k = 0; k < b->ninput; k++) { ty_release(b->result[k]); b->result[k] = NULL; }
  hold(b->root, b->grad, b->nroot, b->input, b->ninput, false);
  forget(&p);
  return s;
}

static ty_status reached_now(ty_ctx *ctx, ty_tensor **roots, int nroot, ty_tensor **leaves, int nleaf, bool *reached, bool *others) {
  pass p = {.ctx = ctx};
  for (int k = 0; k < nroot; k++) TY_TRY(ty_history(ctx, roots[k]));
  hold(roots, NULL, nroot, leaves, nleaf, true);
  const ty_status s = explore(&p, roots, nroot, NULL, 0);
  *others = false;
  for (int i = 0; i < p.n && s == TY_OK; i++) {
    bool listed = !p.e[i].leaf;
    for (int k = 0; k < nleaf && !listed; k++) listed = p.e[i].leaf == leaves[k];
    *others = *others || !listed;
  }
  for (int k = 0; k < nleaf; k++) reached[k] = s == TY_OK && find(&p, leaves[k]) >= 0;
  hold(roots, NULL, nroot, leaves, nleaf, false);
  forget(&p);
  return s;
}

ty_status ty_reached(ty_ctx *ctx, ty_tensor **roots, int nroot, ty_tensor **leaves, int nleaf, bool *reached, bool *others) {
  return ctx->program ? ty_program_reached(ctx, roots, nroot, leaves, nleaf, reached, others, reached_now)
    : reached_now(ctx, roots, nroot, leaves, nleaf, reached, others);
}

static int by_id(const void *a, const void *b) {
  const ty_storage *x = *(ty_storage *const *)a, *y = *(ty_storage *const *)b;
  return x->id < y->id ? -1 : x->id > y->id;
}

ty_status ty_kept(ty_ctx *ctx, ty_tensor **roots, int nroot, uint64_t since, long long *bytes) {
  pass p = {.ctx = ctx};
  ty_storage **s = NULL;
  int n = 0, room = 0;
  hold(roots, NULL, nroot, NULL, 0, true);
  ty_status st = explore(&p, roots, nroot, NULL, 0);
  for (int i = 0; i < p.n && st == TY_OK; i++) {
    const ty_node *k = p.e[i].node;
    for (int j = 0; k && j < k->nin + k->nout; j++) {
      const ty_tensor *t = k->saved[j].t;
      if (!t || t->storage->id < since) continue;
      if (!ty_grow(&s, n + 1, &room, sizeof *s)) { st = ty_no_memory(ctx, "backward"); break; }
      s[n++] = t->storage;
    }
  }
  if (n) qsort(s, (size_t)n, sizeof *s, by_id);
  *bytes = 0;
  for (int i = 0; i < n; i++)
    if (i == 0 || s[i] != s[i - 1]) *bytes += (long long)s[i]->nbytes;
  ty_free(s);
  hold(roots, NULL, nroot, NULL, 0, false);
  forget(&p);
  return st;
}

ty_status ty_backward(ty_ctx *ctx, const ty_backward_call *b) {
  return ctx->program ? ty_program_backward(ctx, b, backward_now) : backward_now(ctx, b);
}
