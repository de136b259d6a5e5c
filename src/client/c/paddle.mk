# The three published revisions of PaddlePaddle's client library, on libpserver: included by Makefile.
# The shared libraries lie beside libpserver; what programs are linked with, in a directory for each
# revision, because all of them are called -lpaddle_pserver_client.

PADDLE_REVISIONS := 1 2 3
PADDLE := libpaddle_pserver_client
PADDLE_INCLUDE := ../../../include/paddle
PADDLE_CFLAGS := -std=c11 -Wall -Wextra -Wpedantic -fPIC -pthread
PADDLE_CPPFLAGS := -D_GNU_SOURCE -I../../../include
PADDLE_COMMON := $(filter-out paddle/pointer-client.c,$(wildcard paddle/*.c))
PADDLE_1 := $(PADDLE_COMMON) paddle/pointer-client.c $(wildcard paddle/v1/*.c)
PADDLE_2 := $(PADDLE_COMMON) paddle/pointer-client.c $(wildcard paddle/v2/*.c)
PADDLE_3 := $(PADDLE_COMMON) $(wildcard paddle/v3/*.c)
# What a revision needs beside libpserver, as modules of pkg-config.
PADDLE_NEEDS_3 := libcurl
PADDLE_OBJECTS := $(patsubst %.c,$(BUILD)/objects/%.o,$(sort $(foreach r,$(PADDLE_REVISIONS),$(PADDLE_$(r)))))
PADDLE_PACKAGES := $(foreach r,$(PADDLE_REVISIONS),paddle-pserver-client-$(r))
PADDLE_BUILT_LIB := $(abspath $(BUILD)/lib)
PADDLE_BUILT_INCLUDE := $(abspath ../../../include)

.PHONY: paddle install-paddle
all: paddle
install: install-paddle

paddle: $(PADDLE_PACKAGES:%=$(BUILD)/lib/%/$(PADDLE).so) $(PADDLE_PACKAGES:%=$(BUILD)/lib/%/$(PADDLE).a) \
  $(PADDLE_PACKAGES:%=$(BUILD)/lib/pkgconfig/%.pc) \
  $(foreach p,pserver $(PADDLE_PACKAGES),$(BUILD)/lib/cmake/$(p)/$(p)-config.cmake)

$(PADDLE_OBJECTS): $(BUILD)/objects/%.o: %.c paddle.mk
	@mkdir -p $(@D)
	$(CC) $(PADDLE_CPPFLAGS) $(CPPFLAGS) $(PADDLE_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

-include $(PADDLE_OBJECTS:.o=.d)

# $(1): revision.
define paddle_rules
$(BUILD)/lib/$(PADDLE).so.$(1): $(PADDLE_$(1):%.c=$(BUILD)/objects/%.o) paddle/paddle.map | $(BUILD)/lib/libpserver.so
	$(CC) -shared $(CFLAGS) $(LDFLAGS) -Wl,-soname,$(PADDLE).so.$(1) -Wl,--version-script=paddle/paddle.map \
	  -Wl,--no-undefined -Wl,-rpath,'$$$$ORIGIN' $(PADDLE_$(1):%.c=$(BUILD)/objects/%.o) -L$(BUILD)/lib -lpserver \
	  $(if $(PADDLE_NEEDS_$(1)),$$(shell $(PKG_CONFIG) --libs $(PADDLE_NEEDS_$(1)))) -pthread -o $$@

$(BUILD)/lib/paddle-pserver-client-$(1)/$(PADDLE).so: $(BUILD)/lib/$(PADDLE).so.$(1)
	@mkdir -p $$(@D)
	ln -sf ../$(PADDLE).so.$(1) $$@

# One object whose only global names are the published ones.
$(BUILD)/lib/paddle-pserver-client-$(1)/$(PADDLE).a: $(PADDLE_$(1):%.c=$(BUILD)/objects/%.o)
	@mkdir -p $$(@D)
	$(CC) -r -nostdlib $(PADDLE_$(1):%.c=$(BUILD)/objects/%.o) -o $$(@:.a=.o)
	$(OBJCOPY) --wildcard --keep-global-symbol='paddle_*' $$(@:.a=.o)
	rm -f $$@
	$(AR) rcs $$@ $$(@:.a=.o)
	rm $$(@:.a=.o)

$(BUILD)/lib/pkgconfig/paddle-pserver-client-$(1).pc: paddle.mk
	$$(call paddle_pc,$$@,$(1),$(abspath $(BUILD)),$(PADDLE_BUILT_LIB),$(PADDLE_BUILT_INCLUDE), -Wl$$(comma)-rpath$$(comma)$$$${libdir})

$(BUILD)/lib/cmake/paddle-pserver-client-$(1)/paddle-pserver-client-$(1)-config.cmake: paddle.mk
	$$(call paddle_cmake,$$(@D),$(1),$(PADDLE_BUILT_LIB),$(PADDLE_BUILT_INCLUDE))
endef

comma := ,

# $(1): the file, $(2): revision, $(3): prefix, $(4): libraries, $(5): headers, $(6): more for the linker.
define paddle_pc
	@mkdir -p $(dir $(1))
	@printf '%s\n' 'prefix=$(3)' 'libdir=$(4)' 'includedir=$(5)' '' 'Name: paddle-pserver-client-$(2)' \
	  'Description: published revision $(2) of the client of PaddlePaddle'\''s parameter server' \
	  'Version: $(VERSION)' 'Requires.private: pserver $(PADDLE_NEEDS_$(2))' \
	  'Libs: -L$${libdir}/paddle-pserver-client-$(2) -lpaddle_pserver_client -Wl,-rpath-link,$${libdir}$(6)' 'Libs.private: -pthread' \
	  'Cflags: -I$${includedir}/paddle/v$(2)' > $(1)
endef

# $(1): directory, $(2): revision, $(3): libraries, $(4): headers.
paddle_cmake = $(call write_cmake,$(1),paddle-pserver-client-$(2),$(3),$(PADDLE).so.$(2),$(PADDLE).so.$(2),paddle-pserver-client-$(2)/$(PADDLE).a,$(4)/paddle/v$(2),$(PADDLE_NEEDS_$(2)))

# $(1): directory, $(2): libraries, $(3): headers.
core_cmake = $(call write_cmake,$(1),pserver,$(2),$(notdir $(SHARED)),libpserver.so.$(ABI),libpserver.a,$(3),libnats $(MSGPACK))

# A package for CMake: NAME::NAME is shared, NAME::NAME-static static. $(1): directory, $(2): name,
# $(3): libraries, $(4): shared library, $(5): its soname, $(6): static library, $(7): headers,
# $(8): modules of pkg-config that the static library needs.
define write_cmake
	@mkdir -p $(1)
	@sed -e 's|@NAME@|$(2)|g' -e 's|@LIBDIR@|$(3)|g' -e 's|@SHARED@|$(4)|g' -e 's|@SONAME@|$(5)|g' \
	  -e 's|@STATIC@|$(6)|g' -e 's|@INCLUDES@|$(7)|g' -e 's|@NEEDS@|$(strip $(8))|g' config.cmake.in \
	  > $(1)/$(2)-config.cmake
	@sed -e 's|@VERSION@|$(VERSION)|g' config-version.cmake.in > $(1)/$(2)-config-version.cmake
endef

$(foreach r,$(PADDLE_REVISIONS),$(eval $(call paddle_rules,$(r))))

$(BUILD)/lib/cmake/pserver/pserver-config.cmake: paddle.mk config.cmake.in config-version.cmake.in
	$(call core_cmake,$(@D),$(PADDLE_BUILT_LIB),$(PADDLE_BUILT_INCLUDE))

# $(1): revision.
define install_paddle_revision
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/paddle-pserver-client-$(1) $(DESTDIR)$(INCLUDEDIR)/paddle/v$(1)
	$(INSTALL) -m 755 $(BUILD)/lib/$(PADDLE).so.$(1) $(DESTDIR)$(LIBDIR)
	ln -sf ../$(PADDLE).so.$(1) $(DESTDIR)$(LIBDIR)/paddle-pserver-client-$(1)/$(PADDLE).so
	$(INSTALL) -m 644 $(BUILD)/lib/paddle-pserver-client-$(1)/$(PADDLE).a $(DESTDIR)$(LIBDIR)/paddle-pserver-client-$(1)
	$(INSTALL) -m 644 $(wildcard $(PADDLE_INCLUDE)/v$(1)/*.h) $(DESTDIR)$(INCLUDEDIR)/paddle/v$(1)
	$(call paddle_pc,$(DESTDIR)$(LIBDIR)/pkgconfig/paddle-pserver-client-$(1).pc,$(1),$(PREFIX),$(LIBDIR),$(INCLUDEDIR))
	$(call paddle_cmake,$(DESTDIR)$(LIBDIR)/cmake/paddle-pserver-client-$(1),$(1),$(LIBDIR),$(INCLUDEDIR))

endef

install-paddle: all
	$(foreach r,$(PADDLE_REVISIONS),$(call install_paddle_revision,$(r)))
	$(call core_cmake,$(DESTDIR)$(LIBDIR)/cmake/pserver,$(LIBDIR),$(INCLUDEDIR))
