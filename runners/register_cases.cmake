# One CTest test for each subject, model and aspect ("reference:mamba2/cache"), from the case files: one process, one
# model build, a row a case. With ASSAY_SLOW the slow cases are tests of their own ("reference:mamba2/cache.slow"). A test of a subject
# that was not built, or has no GPU, is skipped with its reason (exit 77), not left out.
file(GLOB case_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cases/models/*/*.json)
list(FILTER case_files EXCLUDE REGEX "\\.config\\.json$")

set(groups "")
foreach(file ${case_files})
  # A changed tier moves a case to another test.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} document)
  string(JSON tier ERROR_VARIABLE json_error GET "${document}" tier)
  if(json_error)
    set(tier ci)  # `assay run` says what is wrong with the file
  endif()
  get_filename_component(folder ${file} DIRECTORY)
  get_filename_component(model ${folder} NAME)
  get_filename_component(name ${file} NAME)
  string(REGEX REPLACE "\\.json$" "" variant ${name})
  string(REGEX REPLACE "\\..*$" "" aspect ${name})
  if(tier STREQUAL "slow" AND NOT ASSAY_SLOW)
    continue()
  endif()
  if(tier STREQUAL "slow")
    set(group "${model}/${aspect}.slow")
    list(APPEND "cases_${group}" --case ${model}/${variant})
  else()
    set(group "${model}/${aspect}")
    set("cases_${group}" "${model}/${aspect}.*")
  endif()
  list(APPEND groups ${group})
  set("model_${group}" ${model})
  set("aspect_${group}" ${aspect})
  list(APPEND "tiers_${group}" tier:${tier})
endforeach()

# One for each subject and op ("fast:ops/ssd"), from the op cases.
file(GLOB op_case_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cases/ops/*/*.json)
foreach(file ${op_case_files})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} document)
  string(JSON tier ERROR_VARIABLE json_error GET "${document}" tier)
  if(json_error)
    set(tier ci)
  endif()
  get_filename_component(folder ${file} DIRECTORY)
  get_filename_component(op ${folder} NAME)
  get_filename_component(name ${file} NAME)
  string(REGEX REPLACE "\\.json$" "" variant ${name})
  if(tier STREQUAL "slow" AND NOT ASSAY_SLOW)
    continue()
  endif()
  if(tier STREQUAL "slow")
    set(group "ops/${op}.slow")
    list(APPEND "cases_${group}" --case ops/${op}.${variant})
  else()
    set(group "ops/${op}")
    set("cases_${group}" "ops/${op}.*")
  endif()
  list(APPEND groups ${group})
  set("model_${group}" ops)
  set("aspect_${group}" ${op})
  list(APPEND "tiers_${group}" tier:${tier})
endforeach()
list(REMOVE_DUPLICATES groups)

foreach(subject reference fast)
  foreach(group ${groups})
    set(test "${subject}:${group}")
    string(REPLACE "/" "." folder ${group})
    add_test(NAME ${test}
      COMMAND assay run --subject ${subject} ${cases_${group}} --root ${PROJECT_SOURCE_DIR}
              --out ${CMAKE_BINARY_DIR}/out/${subject}.${folder})
    list(REMOVE_DUPLICATES "tiers_${group}")
    set_tests_properties(${test} PROPERTIES
      LABELS "subject:${subject};model:${model_${group}};aspect:${aspect_${group}};${tiers_${group}}"
      SKIP_RETURN_CODE 77 TIMEOUT 1800
      ATTACHED_FILES_ON_FAIL ${CMAKE_BINARY_DIR}/out/${subject}.${folder}/results.jsonl)
    if(subject STREQUAL "fast")
      set_tests_properties(${test} PROPERTIES RESOURCE_GROUPS gpus:1)
      # Without a resource spec file CTest does not count GPUs: one test at a time then.
      if(NOT CTEST_RESOURCE_SPEC_FILE)
        set_tests_properties(${test} PROPERTIES RESOURCE_LOCK gpu)
      endif()
    endif()
  endforeach()
endforeach()

# The third party's engine on the real cases and goldens.
if(groups MATCHES "mamba/")
  add_test(NAME third_party:mamba
    COMMAND assay run --subject $<TARGET_FILE:tiny_subject> mamba --root ${PROJECT_SOURCE_DIR}
            --out ${CMAKE_BINARY_DIR}/out/third_party.mamba)
  set_tests_properties(third_party:mamba PROPERTIES LABELS "subject:tiny;model:mamba" TIMEOUT 600)
endif()

# The low-precision gates on a subject that is right and computes in 16 bit.
if(TARGET assay_emulated)
  foreach(aspect fp16 bf16)
    add_test(NAME emulated:${aspect}
      COMMAND assay run aspect:${aspect} --subject $<TARGET_FILE:assay_emulated> --root ${PROJECT_SOURCE_DIR}
              --out ${CMAKE_BINARY_DIR}/out/emulated.${aspect})
    set_tests_properties(emulated:${aspect} PROPERTIES LABELS "subject:emulated;aspect:${aspect}" TIMEOUT 600)
  endforeach()
endif()

# Every cell of models x aspects has a case.
set(corpus_is_complete TRUE)  # TRUE lets corpus:coverage run
add_test(NAME corpus:coverage COMMAND assay list --coverage --root ${PROJECT_SOURCE_DIR})
set_tests_properties(corpus:coverage PROPERTIES LABELS "corpus" TIMEOUT 60)
if(NOT corpus_is_complete)
  set_tests_properties(corpus:coverage PROPERTIES DISABLED TRUE)
endif()
