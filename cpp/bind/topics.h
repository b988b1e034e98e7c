// One function per topic of the extension module; module.cpp is the table of contents.
#pragma once

#include <nanobind/nanobind.h>

namespace buropt {

/// All of them.
void bind_all(nanobind::module_& m);

void bind_graph(nanobind::module_& m);
void bind_builder(nanobind::module_& m);
void bind_primitives(nanobind::module_& m);
void bind_samples(nanobind::module_& m);
void bind_evaluator(nanobind::module_& m);
void bind_bound_call(nanobind::module_& m);
void bind_quick_method(nanobind::module_& m);
void bind_query(nanobind::module_& m);
void bind_function(nanobind::module_& m);
void bind_quick_call(nanobind::module_& m);
void bind_random(nanobind::module_& m);
void bind_compress(nanobind::module_& m);
void bind_data(nanobind::module_& m);
void bind_inner(nanobind::module_& m);
void bind_hessians(nanobind::module_& m);
void bind_triangles(nanobind::module_& m);
void bind_worker_entries(nanobind::module_& m);
void bind_general_loops(nanobind::module_& m);
void bind_value(nanobind::module_& m);

}  // namespace buropt
